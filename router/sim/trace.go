// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weft-go/weft/protocols/intent"
)

// trace is a recorded list of requests.
type trace struct {
	block    int // tokens
	longest  int // request, in tokens
	requests []traced
}

// traced is a recorded request.
type traced struct {
	at     float64 // ms
	hashes []uint64
	length int
	output int
	model  string
	intent intent.Intent
	measured
}

// line is a line of a trace, in one of the formats.
type line struct {
	Timestamp    float64  `json:"timestamp"` // ms
	InputLength  int      `json:"input_length"`
	OutputLength int      `json:"output_length"`
	HashIDs      []uint64 `json:"hash_ids"`
	precedence
	record         // of Dynamo's format
	Event  *record `json:"event"` // or inside another object
}

// precedence is where a request is in the router's queue.
type precedence struct {
	Priority int32  `json:"priority"`
	Tier     uint32 `json:"strict_priority"`
}

// record is a record of Dynamo's request traces.
type record struct {
	Type    string `json:"event_type"`
	Context struct {
		Session    string          `json:"session_id"`
		Parent     string          `json:"parent_session_id"`
		Final      bool            `json:"session_final"`
		Compaction json.RawMessage `json:"compaction"`
		Trigger    intent.Trigger  `json:"input_trigger"`
	} `json:"agent_context"`
	Request struct {
		precedence
		Model    string  `json:"model"`
		Input    float64 `json:"input_tokens"`
		Output   int     `json:"output_tokens"`
		Cached   float64 `json:"cached_tokens"`
		Received float64 `json:"request_received_ms"`
		Wait     float64 `json:"prefill_wait_time_ms"`
		Prefill  float64 `json:"prefill_time_ms"`
		Total    float64 `json:"total_time_ms"`
		Between  float64 `json:"avg_itl_ms"`
		Worker   struct {
			ID   uint64 `json:"decode_worker_id"`
			Rank uint64 `json:"decode_dp_rank"`
		} `json:"worker"`
		Replay struct {
			Block  int      `json:"trace_block_size"`
			Length int      `json:"input_length"`
			Hashes []uint64 `json:"input_sequence_hashes"`
		} `json:"replay"`
	} `json:"request"`
}

// intent returns the hints of the request.
func (e *record) intent() intent.Intent {
	c, q := &e.Context, &e.Request
	in := intent.Intent{Priority: q.Priority, Tier: q.Tier, Trigger: c.Trigger, Session: intent.Session{ID: c.Session, Parent: c.Parent, Final: c.Final}}
	if len(c.Compaction) > 0 && string(c.Compaction) != "null" {
		in.Compaction = map[string]string{}
	}
	return in
}

const (
	mooncakeBlock = 512
	maxLine       = 16 << 20
	maxTraced     = 8 << 20 // tokens of a request
)

// parse reads a trace.
func parse(data []byte) (*trace, error) {
	t := &trace{}
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, maxLine)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("sim: trace: line %d: %w", n, err)
		}
		r, block := traced{at: l.Timestamp, hashes: l.HashIDs, length: l.InputLength, output: l.OutputLength}, mooncakeBlock
		r.intent.Priority, r.intent.Tier = l.Priority, l.Tier
		e := l.Event
		if e == nil && l.record.Type != "" {
			e = &l.record
		}
		if e != nil {
			q := &e.Request
			if e.Type != "request_end" || q.Replay.Block == 0 {
				continue
			}
			r, block = traced{at: q.Received, hashes: q.Replay.Hashes, length: q.Replay.Length, output: q.Output, model: q.Model, intent: e.intent()}, q.Replay.Block
			r.measured = measured{
				worker: [2]uint64{q.Worker.ID, q.Worker.Rank}, begin: q.Received + q.Wait + q.Prefill, end: q.Received + q.Total,
				length: q.Input, cached: q.Cached, output: float64(q.Output), front: q.Wait, prefill: q.Prefill, step: q.Between,
			}
			if !(r.end > r.begin) {
				r.measured = measured{}
			}
		}
		r.output = max(r.output, 1)
		switch {
		case t.block != 0 && block != t.block:
			return nil, fmt.Errorf("sim: trace: line %d: blocks of %d tokens (want %d, as before)", n, block, t.block)
		case len(t.requests) > 0 && r.model != t.requests[0].model:
			return nil, fmt.Errorf("sim: trace: line %d: a request for the model %q (want %q, as before)", n, r.model, t.requests[0].model)
		case block < 1 || block > 1<<16 || r.length < 1 || r.length+r.output > maxTraced || len(r.hashes) > r.length/block+1:
			return nil, fmt.Errorf("sim: trace: line %d: invalid request: %d tokens, %d blocks of %d, %d tokens of output", n, r.length, len(r.hashes), block, r.output)
		}
		t.block, t.longest = block, max(t.longest, r.length+r.output)
		for i, h := range r.hashes { // Mooncake's are small numbers
			r.hashes[i] = appendHashes(nil, 1, 0, 0, h)[0]
		}
		t.requests = append(t.requests, r)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("sim: trace: %w", err)
	}
	if len(t.requests) == 0 {
		return nil, fmt.Errorf("sim: trace: no requests")
	}
	slices.SortStableFunc(t.requests, func(a, b traced) int { return cmp.Compare(a.at, b.at) })
	return t, nil
}

// Reuse returns how many requests a trace has (see [Options.Trace]), how many blocks are in their prompts, an incomplete last one
// included where the trace has it, and how many of these a cache without limits would have had from earlier requests.
func Reuse(data []byte) (requests, blocks, cached int, err error) {
	t, err := parse(data)
	if err != nil {
		return 0, 0, 0, err
	}
	seen := make(map[uint64]bool)
	for _, r := range t.requests {
		prefix := true
		blocks += len(r.hashes)
		for _, h := range r.hashes {
			if prefix = prefix && seen[h]; prefix {
				cached++
			}
			seen[h] = true
		}
	}
	return len(t.requests), blocks, cached, nil
}

// whole returns the hashes of the complete blocks of each request's prompt and response. A response's blocks are those that its session's
// next prompt has after this one, if it begins with this one; no other request has the rest.
func (t *trace) whole() [][]uint64 {
	all := make([][]uint64, len(t.requests))
	next := make(map[string]*traced) // of sessions
	for i, q := range slices.Backward(t.requests) {
		n, end := min(len(q.hashes), q.length/t.block), (q.length+q.output)/t.block
		hashes := slices.Clone(q.hashes[:n])
		if id := q.intent.Session.ID; id != "" {
			if f := next[id]; f != nil && n <= len(f.hashes) && slices.Equal(f.hashes[:n], hashes) {
				hashes = append(hashes, f.hashes[n:max(n, min(end, f.length/t.block, len(f.hashes)))]...)
			}
			next[id] = &t.requests[i]
		}
		all[i] = appendHashes(hashes, end, 0, 0, uint64(i)<<20+1)
	}
	return all
}

// replay schedules the requests of a trace so that their work is Load of what the engines can do, and returns when the last one begins.
func (r *run) replay(t *trace) time.Duration {
	whole := t.whole()
	seen := make(map[uint64]bool)
	var work float64 // ms
	for i, q := range t.requests {
		hit := 0
		for hit < len(q.hashes) && hit < q.length/t.block && seen[q.hashes[hit]] {
			hit++
		}
		for _, h := range whole[i] {
			seen[h] = true
		}
		c := float64(min(hit*t.block, q.length-1))
		work += r.costs.work(float64(q.length)-c, c, float64(q.output), float64(q.length))
	}
	speed := 0.0
	for _, e := range r.engines {
		speed += 1 / e.slow
	}
	first, last := t.requests[0].at, t.requests[len(t.requests)-1].at
	stretch := 1.0
	if last > first {
		stretch = work / r.opt.Load / speed / (last - first)
	}
	at := func(ms float64) time.Duration { return time.Duration((ms - first) * stretch * 1e6) }
	for i := range t.requests {
		q := &t.requests[i]
		r.after(at(q.at), func() {
			r.offer(&session{chain: &chain{turns: []turn{{output: q.output}}}, id: uint64(i), length: q.length, hashes: whole[i], recorded: &q.intent})
		})
	}
	return at(last)
}
