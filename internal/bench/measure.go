// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Timing is the cost of one runner on one set of inputs.
type Timing struct {
	NS     float64 `json:"ns"`     // CPU time per chunk, the median of the rounds
	Min    float64 `json:"min"`    // the lowest round
	Allocs float64 `json:"allocs"` // allocations per chunk
	Rounds int     `json:"rounds"`
	// Wrong is the reason for a missing time: the results are wrong or were not requested.
	Wrong string `json:"wrong,omitempty"`
}

// Job is one runner and the inputs it is timed on.
type Job struct {
	Runner Runner
	Inputs []Input

	n     int // repeats in one round
	slow  bool
	seen  int // bytes that came out: what a caller would do with them
	spent time.Duration
	ns    []float64
	alloc []float64
}

// Noisy reports that the rounds differ so much that something else disturbed them.
func (t *Timing) Noisy() bool { return t.NS > 1.15*t.Min }

// slice is the CPU time of one round of one job. After most a job gets no more rounds. Inputs that take longer than slow
// are run once, and not checked a second time.
const (
	slice = 8 * time.Millisecond
	most  = 500 * time.Millisecond
	slow  = 200 * time.Millisecond
)

// drive runs the inputs n times. Garbage of the jobs before is collected first, so that they do not charge this one.
func (j *Job) drive(n int) (cpu time.Duration, mallocs uint64) {
	runtime.GC()
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	t := cpuTime()
	for range n {
		for i := range j.Inputs {
			j.seen += j.Runner.Drive(&j.Inputs[i])
		}
	}
	cpu = cpuTime() - t
	runtime.ReadMemStats(&b)
	return cpu, b.Mallocs - a.Mallocs
}

// add notes one round.
func (j *Job) add(t time.Duration, mallocs uint64) {
	chunks, _ := Size(j.Inputs)
	j.spent += t
	j.ns = append(j.ns, float64(t)/float64(j.n*chunks))
	j.alloc = append(j.alloc, float64(mallocs)/float64(j.n*chunks))
}

// timing sums the rounds up; without any it is zero.
func (j *Job) timing() (t Timing) {
	if t.Rounds = len(j.ns); t.Rounds > 0 {
		t.NS, t.Min, t.Allocs = round(median(j.ns), 100), round(slices.Min(j.ns), 100), round(median(j.alloc), 1e6)
	}
	return t
}

// check describes what is wrong with the results of j, or returns "".
func (j *Job) check() string {
	for i := range j.Inputs {
		in := &j.Inputs[i]
		if err := in.Sample.Check(j.Runner.Collect(in)); err != nil {
			return fmt.Sprintf("%s: %v", in.Sample.Name, err)
		}
	}
	return ""
}

// Measure times the jobs in turn, one round of each and then the next round, so that what disturbs the machine disturbs
// all of them. While a timing is noisy there are more rounds, up to four times as many. A job whose results are wrong,
// before its time is taken or after, has none. The timings are in the order of the jobs.
func Measure(rounds int, jobs ...*Job) []Timing {
	out := make([]Timing, len(jobs))
	for i, j := range jobs {
		j.ns, j.alloc, j.spent, j.slow = nil, nil, 0, false
		if len(j.Inputs) == 0 {
			out[i].Wrong = "no input"
			continue
		}
		if out[i].Wrong = j.check(); out[i].Wrong != "" {
			continue
		}
		j.n = 1
		if t, mallocs := j.drive(1); t >= slow { // else it has warmed up
			j.add(t, mallocs)
			j.slow = true
			continue
		}
		for ; ; j.n *= 2 {
			if t, _ := j.drive(j.n); t >= slice {
				break
			}
		}
	}
	for range 4 {
		for range rounds {
			for i, j := range jobs {
				if out[i].Wrong == "" && !j.slow && j.spent < most {
					j.add(j.drive(j.n))
				}
			}
		}
		if !slices.ContainsFunc(jobs, func(j *Job) bool { t := j.timing(); return t.Noisy() }) {
			break
		}
	}
	for i, j := range jobs {
		if out[i].Wrong == "" && !j.slow {
			out[i].Wrong = j.check()
		}
		if out[i].Wrong == "" && len(j.ns) > 0 {
			out[i] = j.timing()
		}
	}
	return out
}

// Try checks what r makes of the inputs and returns the CPU time that it took.
func Try(r Runner, ins []Input) (time.Duration, error) {
	j := Job{Runner: r, Inputs: ins}
	t := cpuTime()
	wrong := j.check()
	t = cpuTime() - t
	if wrong != "" {
		return t, errors.New(wrong)
	}
	return t, nil
}

func round(x, unit float64) float64 { return math.Round(x*unit) / unit }

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}
