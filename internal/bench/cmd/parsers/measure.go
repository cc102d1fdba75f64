// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/parsers"
)

// measure runs one family over the workloads of o.
func measure(o options, f bench.Family, s source) (*report, error) {
	r := &report{Family: f.Name, Tagged: f.Tagged, Chunks: o.chunks, Ollama: f.Ollama, bars: f.Bars()}
	for _, work := range o.works {
		samples, from, err := s.samples(f.Name, work)
		if err != nil {
			return nil, err
		}
		if len(samples) == 0 {
			continue
		}
		tools, err := s.tools(from)
		if err != nil {
			return nil, err
		}
		weft, err := bench.NewWeft(f, samples[0].Prefill, tools, o.fresh)
		if unknown, ok := errors.AsType[*parsers.UnknownFamilyError](err); ok {
			r.NotBuilt = unknown.Error()
			return r, nil
		} else if err != nil {
			return nil, err
		}
		peer, err := bench.NewOllama(f, tools)
		if err != nil {
			peer = nil
		}
		r.Source = from
		if work == "growth" {
			more, _, err := s.samples(f.Name, "more")
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows, growth(o, weft, peer, samples, more)...)
		} else {
			r.Rows = append(r.Rows, one(o, work, weft, peer, samples))
		}
	}
	return r, nil
}

// one measures one workload.
func one(o options, work string, weft *bench.Weft, peer *bench.Ollama, samples []bench.Sample) *row {
	ins := bench.Inputs(samples, o.chunks)
	w := newRow(work, ins)
	w.Right = everyWay(weft, samples)
	jobs := []*bench.Job{{Runner: weft, Inputs: ins}}
	if peer != nil {
		how, why, _ := fair(peer, samples, o.chunks)
		if w.OllamaChunks = how; how == "" {
			w.Ollama = &bench.Timing{Wrong: why}
		} else {
			jobs = append(jobs, &bench.Job{Runner: peer, Inputs: bench.Inputs(samples, how)})
		}
	}
	t := bench.Measure(o.rounds, jobs...)
	w.Weft = t[0]
	if len(t) > 1 {
		w.Ollama = &t[1]
	}
	if w.Right != "" && w.Weft.Wrong == "" {
		w.Weft = bench.Timing{Wrong: w.Right}
	}
	return w
}

// everyWay checks weft on every way to cut the samples, not only on the one that is timed.
func everyWay(r bench.Runner, samples []bench.Sample) string {
	for _, how := range []string{"whole", "runes", "atomic", "bytes"} {
		if _, err := bench.Try(r, bench.Inputs(samples, how)); err != nil {
			return fmt.Sprintf("%s chunks of %v", how, err)
		}
	}
	return ""
}

// fair returns a chunking for which the peer's results are right: the requested one, else whole markers, as a
// detokenizer yields them. It returns "" and the reason when the peer is wrong both ways. spent is the time of one try.
func fair(r bench.Runner, samples []bench.Sample, want string) (how, why string, spent time.Duration) {
	for _, how := range []string{want, "atomic"} {
		t, err := bench.Try(r, bench.Inputs(samples, how))
		spent = max(spent, t)
		if err == nil {
			return how, "", spent
		}
		if why == "" {
			why = fmt.Sprintf("%s chunks of %v", how, err)
		}
	}
	return "", why, spent
}

// limit is the longest that one reply of a peer may take in the growth workload.
const limit = 3 * time.Second

// growth measures the sizes of one argument, all of them in the same rounds, and with them more, the other replies with
// 10 KB. A peer whose time grows with the square of the size is left out from where it would take too long.
func growth(o options, weft *bench.Weft, peer *bench.Ollama, samples, more []bench.Sample) []*row {
	var rows []*row
	var jobs []*bench.Job
	var last, lastBytes float64 // of one reply
	add := func(name string, group []bench.Sample) {
		ins := bench.Inputs(group, o.chunks)
		w := newRow(name, ins)
		w.Right = everyWay(weft, group)
		rows = append(rows, w)
		peerJob := &bench.Job{}
		jobs = append(jobs, &bench.Job{Runner: weft, Inputs: ins}, peerJob)
		if peer == nil {
			return
		}
		replies := float64(len(group))
		step := float64(w.Bytes) / replies / max(1, lastBytes)
		if worst := time.Duration(last * step * step); lastBytes > 0 && worst > limit {
			w.Ollama = &bench.Timing{Wrong: fmt.Sprintf("left out: may take %.0f s", worst.Seconds())}
			return
		}
		cuts, why, spent := fair(peer, group, o.chunks)
		last, lastBytes = float64(spent)/replies, float64(w.Bytes)/replies
		if w.OllamaChunks = cuts; cuts == "" {
			w.Ollama = &bench.Timing{Wrong: why}
			return
		}
		*peerJob = bench.Job{Runner: peer, Inputs: bench.Inputs(group, cuts)}
	}
	for i, s := range samples {
		add(s.Name, samples[i:i+1])
		if s.Name == "growth-10240" && len(more) > 0 {
			add(moreName, more)
		}
	}
	t := bench.Measure(o.rounds, jobs...)
	for i, w := range rows {
		if w.Weft = t[2*i]; w.Right != "" && w.Weft.Wrong == "" {
			w.Weft = bench.Timing{Wrong: w.Right}
		}
		if w.OllamaChunks != "" {
			w.Ollama = &t[2*i+1]
		}
	}
	return rows
}

// moreName is the row of the replies with a 10 KB argument that growth is judged by.
var moreName = fmt.Sprintf("growth-10240 ×%d", bench.Replies)

// floors are the runs of the minimal machine. Families are compared with the mean of the runs before and after them.
type floors struct {
	floor *bench.Floor
	file  string
	raw   []byte
	runs  []bench.FloorTimes
	at    time.Time
}

func newFloors(f *bench.Floor, file string) *floors { return &floors{floor: f, file: file} }

// recent runs the minimal machine if its last run is older than age, and returns the number of the last run.
func (f *floors) recent(ctx context.Context, age time.Duration) (int, error) {
	if f.floor == nil || len(f.runs) > 0 && time.Since(f.at) < age {
		return len(f.runs) - 1, nil
	}
	t, out, err := f.floor.Run(ctx)
	if err != nil {
		return 0, err
	}
	if f.raw = append(f.raw, out...); f.file != "" {
		if err := os.WriteFile(f.file, f.raw, 0o644); err != nil {
			return 0, err
		}
	}
	f.runs, f.at = append(f.runs, t), time.Now()
	return len(f.runs) - 1, nil
}

// around returns the mean of run i and the next, and the lower of their lowest.
func (f *floors) around(i int) bench.FloorTimes {
	if len(f.runs) == 0 {
		return bench.FloorTimes{}
	}
	a, b := f.runs[i], f.runs[min(i+1, len(f.runs)-1)]
	mean := func(x, y bench.FloorTime) bench.FloorTime {
		return bench.FloorTime{NS: (x.NS + y.NS) / 2, Min: min(x.Min, y.Min)}
	}
	return bench.FloorTimes{Plain: mean(a.Plain, b.Plain), Agentic: mean(a.Agentic, b.Agentic), Growth: mean(a.Growth, b.Growth)}
}

func (f *floors) print(w io.Writer) {
	for i, t := range f.runs {
		fmt.Fprintf(w, "minimal machine, run %d: plain %.2f, agentic %.2f, 1 MB argument %.2f ns/chunk\n",
			i+1, t.Plain.NS, t.Agentic.NS, t.Growth.NS)
	}
}
