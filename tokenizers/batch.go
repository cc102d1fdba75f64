// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// This file is the only one of the package that starts goroutines: a thin shell around AppendEncode. All of
// them have ended when a call returns.

// BatchOptions configures [Tokenizer.EncodeBatch] and [Tokenizer.EncodeParallel]. The zero value is the
// default.
type BatchOptions struct {
	// Workers is the largest number of goroutines, the caller's among them; 0 means one per processor.
	Workers int
	// Framed adds the frame, as [Tokenizer.AppendEncodeFramed] does.
	Framed bool
	// Cutter, made for the same tokenizer, allows to cut long texts into parts that are encoded at the
	// same time. Without one a text is encoded by one worker.
	Cutter *Cutter
}

// batchPart is about how many bytes of text one step of work has. It takes a fraction of a millisecond.
const batchPart = 32 << 10

// batchStep is one step of work: texts[first:last] whole, or, if end > 0, texts[first][start:end].
type batchStep struct{ first, last, start, end int }

// EncodeBatch encodes texts, sharing the work among workers by bytes, and returns their ids in order. The
// result does not depend on the number of workers. Each result is one allocation, or a copy more for a text
// that was cut.
//
// It returns early with ctx's error when ctx is done. A step, 32 KB or one longer text that cannot be cut,
// is not interrupted.
func (t *Tokenizer) EncodeBatch(ctx context.Context, texts []string, opt BatchOptions) ([][]uint32, error) {
	steps := batchSteps(texts, opt)
	done := make([][]uint32, len(steps)) // of steps that are part of a text
	out := make([][]uint32, len(texts))
	err := runSteps(ctx, opt.Workers, len(steps), func(k int, buf []uint32) []uint32 {
		s := steps[k]
		if s.end > 0 {
			buf = t.AppendEncode(buf, texts[s.first][s.start:s.end])
			done[k] = slices.Clone(buf)
			return buf
		}
		for i := s.first; i < s.last; i++ {
			if buf = buf[:0]; opt.Framed {
				buf = t.AppendEncodeFramed(buf, texts[i])
			} else {
				buf = t.AppendEncode(buf, texts[i])
			}
			out[i] = append(make([]uint32, 0, len(buf)), buf...)
		}
		return buf
	})
	if err != nil {
		return nil, err
	}
	for k := 0; k < len(steps); {
		n := k
		for n < len(steps) && steps[n].end > 0 && steps[n].first == steps[k].first {
			n++
		}
		if n == k {
			k++
			continue
		}
		var before, after []uint32
		if opt.Framed {
			before, after = t.Frame()
		}
		out[steps[k].first] = slices.Concat(slices.Concat([][]uint32{before}, done[k:n], [][]uint32{after})...)
		k = n
	}
	return out, nil
}

// EncodeParallel is [Tokenizer.AppendEncode] for one long text by several workers, if opt.Cutter is set and
// the text has cut points. It returns dst as it was, and ctx's error, when ctx is done first.
func (t *Tokenizer) EncodeParallel(ctx context.Context, dst []uint32, text string, opt BatchOptions) ([]uint32, error) {
	out, err := t.EncodeBatch(ctx, []string{text}, opt)
	if err != nil {
		return dst, err
	}
	return append(dst, out[0]...), nil
}

// batchSteps cuts the work. It depends on the texts only.
func batchSteps(texts []string, opt BatchOptions) []batchStep {
	var steps []batchStep
	first, size := 0, 0
	flush := func(last int) {
		if last > first {
			steps = append(steps, batchStep{first: first, last: last})
		}
		first, size = last, 0
	}
	for i, s := range texts {
		if opt.Cutter != nil && len(s) >= 2*batchPart {
			flush(i)
			start := 0
			for len(s)-start >= 2*batchPart {
				cut, kind := opt.Cutter.Next(s, start+batchPart, nil)
				if kind == NoCut || cut == len(s) {
					break
				}
				steps = append(steps, batchStep{first: i, start: start, end: cut})
				start = cut
			}
			if start > 0 {
				steps = append(steps, batchStep{first: i, start: start, end: len(s)})
				first = i + 1
				continue
			}
		}
		if size += len(s); size >= batchPart {
			flush(i + 1)
		}
	}
	flush(len(texts))
	return steps
}

// runSteps calls f for 0 to n-1, each worker taking the next one, until all are done or ctx is. f gets an
// empty buffer of its worker and returns it.
func runSteps(ctx context.Context, workers, n int, f func(k int, buf []uint32) []uint32) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, n)
	var next atomic.Int64
	work := func() {
		var buf []uint32
		for ctx.Err() == nil {
			k := int(next.Add(1) - 1)
			if k >= n {
				return
			}
			buf = f(k, buf[:0])
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return ctx.Err()
}
