// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/tokenizers"
)

// stats collects the texts of a run to time their encoding afterwards.
type stats struct {
	load  time.Duration
	texts []string
}

// figures is the last line of output. MB is 1,000,000 bytes.
type figures struct {
	Bytes           int     `json:"bytes"`
	Tokens          int     `json:"tokens"`
	MBPerSCold      float64 `json:"mb_per_s_cold"` // median; caches are emptied before each round over all texts
	MBPerSWarm      float64 `json:"mb_per_s_warm"`
	LoadMS          float64 `json:"load_ms"`
	AllocsPerEncode float64 `json:"allocs_per_encode"` // warm
}

// measure encodes all texts on this goroutine, in rounds, until the times are steady.
func (s *stats) measure(tok *tokenizers.Tokenizer, special bool) figures {
	f := figures{LoadMS: float64(s.load.Microseconds()) / 1000}
	var ids []uint32
	round := func() time.Duration {
		start := time.Now()
		for _, text := range s.texts {
			if special {
				ids = tok.AppendEncodeSpecial(ids[:0], text)
			} else {
				ids = tok.AppendEncode(ids[:0], text)
			}
		}
		return time.Since(start)
	}
	for _, text := range s.texts {
		f.Bytes += len(text)
		f.Tokens += len(tok.AppendEncode(nil, text))
	}
	if f.Bytes == 0 {
		return f
	}
	f.MBPerSCold = float64(f.Bytes) / 1e6 / median(func() time.Duration { tok.ResetCache(); return round() }).Seconds()
	round()
	f.MBPerSWarm = float64(f.Bytes) / 1e6 / median(round).Seconds()

	const rounds = 3
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	f.AllocsPerEncode = float64(after.Mallocs-before.Mallocs) / float64(rounds*len(s.texts))
	return f
}

// median runs f at least 5 times and for at least half a second.
func median(f func() time.Duration) time.Duration {
	var times []time.Duration
	for start := time.Now(); len(times) < 5 || time.Since(start) < 500*time.Millisecond && len(times) < 10000; {
		times = append(times, f())
	}
	slices.Sort(times)
	return max(times[len(times)/2], 1)
}
