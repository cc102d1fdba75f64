// SPDX-License-Identifier: Apache-2.0

package index

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// threadTime returns the CPU time of the thread.
func threadTime() time.Duration {
	var ts syscall.Timespec
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkHold measures, at ten million residencies, each hold of the lock by a snapshot, by clearing a worker, and by expiring
// predictions, in CPU time of the thread.
func BenchmarkHold(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const workers, sessions, length = 16, 51_000, 196
	x := New(1, nil)
	local := make([]uint64, length)
	for i := range WorkerID(workers) {
		x.AddWorker(Key{DPRank: uint32(i)})
	}
	next := uint64(1)
	for s := range sessions {
		for i := range local {
			next++
			local[i] = next * 0x9E3779B97F4A7C15
		}
		seq := kvhash.AppendSequence(nil, local)
		x.Add(WorkerID(s%workers), &kvevent.Event{Kind: kvevent.Stored, BlockHashes: seq, LocalHashes: local})
		x.Predict(WorkerID((s+1)%workers), seq[:10], 0, time.Unix(1, 0))
	}
	b.Logf("%+v", x.Stats())
	report := func(b *testing.B, holds []time.Duration) {
		slices.Sort(holds)
		n := len(holds)
		b.ReportMetric(float64(n), "holds")
		b.ReportMetric(float64(holds[n/2].Microseconds()), "µs/p50")
		b.ReportMetric(float64(holds[n*99/100].Microseconds()), "µs/p99")
		b.ReportMetric(float64(holds[n-1].Microseconds()), "µs/max")
	}
	b.Run("snapshot", func(b *testing.B) {
		runtime.LockOSThread()
		for b.Loop() {
			start := threadTime()
			s := x.shoot(kindIndex, 0)
			holds := []time.Duration{threadTime() - start}
			b.ReportMetric(float64(holds[0].Microseconds()), "µs/begin")
			for more := true; more; {
				start = threadTime()
				more = s.step()
				holds = append(holds, threadTime()-start)
			}
			report(b, holds)
		}
	})
	b.Run("expiry", func(b *testing.B) {
		runtime.LockOSThread()
		var holds []time.Duration
		for b.Loop() {
			for more := true; more; {
				start := threadTime()
				more = x.Expire(time.Unix(1, 0))
				holds = append(holds, threadTime()-start)
			}
		}
		report(b, holds)
	})
	b.Run("clear", func(b *testing.B) {
		runtime.LockOSThread()
		var holds []time.Duration
		for id := WorkerID(0); b.Loop() && id < workers; id++ {
			w := x.workers[id]
			start := threadTime()
			x.mu.Lock()
			x.clear(id, w)
			x.mu.Unlock()
			holds = append(holds, threadTime()-start)
			for x.garbage.Load() {
				start = threadTime()
				x.mu.Lock()
				x.sweep(sweepAtOnce)
				x.mu.Unlock()
				holds = append(holds, threadTime()-start)
			}
		}
		report(b, holds)
	})
}
