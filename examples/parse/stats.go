// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"time"

	"github.com/weft-go/weft/protocols/event"
)

// stats holds the figures of -stats. Times cover only the parser.
type stats struct {
	Bytes          int     `json:"bytes"`
	Chunks         int     `json:"chunks"`
	NsPerChunk     float64 `json:"ns_per_chunk"`
	MBPerS         float64 `json:"mb_per_s"`
	AllocsPerChunk float64 `json:"allocs_per_chunk"`
}

type bencher struct{ jobs []*job }

func (b *bencher) add(j *job) { b.jobs = append(b.jobs, j) }

// pass parses every record once.
func (b *bencher) pass(evs []event.Event) []event.Event {
	for _, j := range b.jobs {
		j.parser.Reset()
		for _, c := range j.chunks {
			evs, _ = j.parser.Append(evs[:0], c) // it parsed without error before
		}
		evs, _ = j.parser.Finish(evs[:0], event.None)
	}
	return evs
}

// measured is the duration of measure. Tests shorten it.
var measured = time.Second

// measure repeats passes for that time and reports the fastest, which is least affected by noise.
func (b *bencher) measure() stats {
	var s stats
	for _, j := range b.jobs {
		s.Bytes += j.bytes
		s.Chunks += len(j.chunks)
	}
	if s.Chunks == 0 {
		return s
	}
	evs := b.pass(nil) // warm up
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	evs = b.pass(evs)
	runtime.ReadMemStats(&after)
	s.AllocsPerChunk = float64(after.Mallocs-before.Mallocs) / float64(s.Chunks)
	best := time.Duration(1<<63 - 1)
	for begin := time.Now(); time.Since(begin) < measured; {
		t := time.Now()
		evs = b.pass(evs)
		best = min(best, time.Since(t))
	}
	s.NsPerChunk = float64(best.Nanoseconds()) / float64(s.Chunks)
	s.MBPerS = float64(s.Bytes) / best.Seconds() / 1e6
	return s
}
