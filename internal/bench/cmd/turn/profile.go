// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profile writes profiles of turns in the gateway to dir, which it makes if need be. cpu.pprof is of all that runs; the turns
// have the label turn=warm, turn=first or turn=cold. The difference of mem.pprof to mem-base.pprof is one conversation's window
// of warm turns, or one turn in the other states.
//
//	go tool pprof -top -tagfocus turn=warm cpu.pprof
//	go tool pprof -top -sample_index alloc_space -base mem-base.pprof mem.pprof
func (r *run) profile(dir, state string) error {
	turns := source{run: r, state: state, open: func() (server, error) { return newHandler(r.model, r.signer) }}
	defer turns.close()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	m := &meter{around: func(g func()) {
		pprof.Do(context.Background(), pprof.Labels("turn", state), func(context.Context) { g() })
	}}
	var sum []cost
	for n := 0; n < 8*r.turns && err == nil; {
		var k int
		k, err = turns.measure(m, &sum)
		n += k
	}
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	n := 0
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	m = &meter{memory: true, around: func(g func()) {
		if n == 0 {
			err = heap(filepath.Join(dir, "mem-base.pprof"))
			runtime.MemProfileRate = 1
		}
		n++
		g()
	}}
	if _, failed := turns.measure(m, &sum); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return heap(filepath.Join(dir, "mem.pprof"))
}

// heap writes a profile of all allocations until now.
func heap(file string) error {
	runtime.MemProfileRate = 0 // nothing more is added
	runtime.GC()
	runtime.GC() // the counters are published after the second one
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.Lookup("allocs").WriteTo(f, 0)
}
