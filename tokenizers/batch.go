// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// This file is the only one in the package that starts goroutines. They call AppendEncode, and they have all ended when
// a call returns.

// batchPart is the approximate size of one step of work in bytes of text. A step takes a fraction of a millisecond.
const batchPart = 32 << 10

// batchStep is one step of work: texts[first:last] whole, or, if end > 0, texts[first][start:end].
type batchStep struct{ first, last, start, end int }

// EncodeBatch encodes texts and returns their IDs in order. It distributes the work by bytes among at most workers
// goroutines, including the caller's; 0 means one per processor. Texts of at least 64 KiB are split where that does not
// change the IDs; see [Tokenizer.Splitter]. The result does not depend on the number of workers. Each result is one
// allocation; the IDs of a split text are copied once more.
//
// It returns ctx's error if ctx is done before all texts are encoded. A step of 32 KiB, or of one longer text that
// cannot be split, is not interrupted.
func (t *Tokenizer) EncodeBatch(ctx context.Context, texts []string, workers int) ([][]uint32, error) {
	return t.encodeBatch(ctx, texts, workers, false)
}

// EncodeBatchSpecial is like [Tokenizer.EncodeBatch] but adds the model's special tokens to each text, as
// [Tokenizer.AppendEncodeSpecial] does.
func (t *Tokenizer) EncodeBatchSpecial(ctx context.Context, texts []string, workers int) ([][]uint32, error) {
	return t.encodeBatch(ctx, texts, workers, true)
}

func (t *Tokenizer) encodeBatch(ctx context.Context, texts []string, workers int, special bool) ([][]uint32, error) {
	var split *Splitter
	if workers != 1 && slices.ContainsFunc(texts, func(s string) bool { return len(s) >= 2*batchPart }) {
		split, _ = t.Splitter() // without one, each text is encoded by one worker
	}
	steps := batchSteps(texts, split)
	done := make([][]uint32, len(steps)) // results of steps that are part of a text
	out := make([][]uint32, len(texts))
	err := runSteps(ctx, workers, len(steps), func(k int, buf []uint32) []uint32 {
		s := steps[k]
		if s.end > 0 {
			buf = t.AppendEncode(buf, texts[s.first][s.start:s.end])
			done[k] = slices.Clone(buf)
			return buf
		}
		for i := s.first; i < s.last; i++ {
			if buf = buf[:0]; special {
				buf = t.AppendEncodeSpecial(buf, texts[i])
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
		if special {
			before, after = t.AddedSpecial()
		}
		out[steps[k].first] = slices.Concat(slices.Concat([][]uint32{before}, done[k:n], [][]uint32{after})...)
		k = n
	}
	return out, nil
}

// batchSteps divides the work. The result depends only on texts and split, which may be nil.
func batchSteps(texts []string, split *Splitter) []batchStep {
	var steps []batchStep
	first, size := 0, 0
	flush := func(last int) {
		if last > first {
			steps = append(steps, batchStep{first: first, last: last})
		}
		first, size = last, 0
	}
	for i, s := range texts {
		if split != nil && len(s) >= 2*batchPart {
			flush(i)
			start := 0
			for len(s)-start >= 2*batchPart {
				cut, kind := split.Next(s, start+batchPart, nil)
				if kind == noBoundary || cut == len(s) {
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

// runSteps calls f for 0 to n-1, distributed among the workers, until all calls have returned or ctx is done. f
// receives an empty buffer of its worker and returns it for reuse.
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
