// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// A requestTrace writes a line for each request that had output, in the form of Dynamo's request traces
// (dynamo.request.trace.v1, lib/llm/src/request_trace/types.rs), from which kvsim and Dynamo's replay repeat it. It has no text:
// prompts are hashes of blocks, which are encrypted, as are the names of sessions, with a key that ends with the program. So
// only equality remains, and a guess cannot be checked. It is safe for concurrent use by multiple goroutines.
type requestTrace struct {
	log *slog.Logger
	key cipher.Block

	mu sync.Mutex
	to io.Writer // nil after an error
}

func newRequestTrace(to io.Writer, log *slog.Logger) *requestTrace {
	var key [32]byte
	rand.Read(key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has a valid size
	}
	return &requestTrace{log: log, key: block, to: to}
}

// traceRecord is a line.
type traceRecord struct {
	Schema  string        `json:"schema"`
	Type    string        `json:"event_type"`
	Time    int64         `json:"event_time_unix_ms"`
	Context *traceSession `json:"agent_context,omitempty"`
	Request traceRequest  `json:"request"`
}

type traceSession struct {
	ID         string    `json:"session_id"`
	Parent     string    `json:"parent_session_id,omitempty"`
	Final      bool      `json:"session_final,omitempty"`
	Compaction *struct{} `json:"compaction,omitempty"`
	Trigger    string    `json:"input_trigger,omitempty"`
}

type traceRequest struct {
	ID       string      `json:"request_id"`
	Model    string      `json:"model"`
	Input    int64       `json:"input_tokens"`
	Output   int64       `json:"output_tokens"`
	Cached   *int64      `json:"cached_tokens,omitempty"` // as the engine reported it
	Priority int32       `json:"priority,omitempty"`
	Tier     uint32      `json:"strict_priority,omitempty"`
	Received int64       `json:"request_received_ms"`
	Wait     float64     `json:"prefill_wait_time_ms"` // until it was sent to the engine
	Prefill  float64     `json:"prefill_time_ms"`      // from then to the first output
	TTFT     float64     `json:"ttft_ms"`
	Total    float64     `json:"total_time_ms"`
	Between  float64     `json:"avg_itl_ms,omitempty"`
	Worker   traceWorker `json:"worker"`
	Replay   traceReplay `json:"replay"`
}

type traceWorker struct {
	ID uint32 `json:"decode_worker_id"`
}

type traceReplay struct {
	BlockSize int      `json:"trace_block_size"`
	Length    int64    `json:"input_length"`
	Hashes    []uint64 `json:"input_sequence_hashes"` // also of an incomplete last block
}

// add writes a request. Those to managed endpoints have no blocks and are not written.
func (t *requestTrace) add(r serve.Record) {
	if r.Usage.Output == 0 || r.FirstByte == 0 || r.BlockSize == 0 {
		return
	}
	end := time.Now()
	q := traceRequest{
		ID: r.EngineRequestID, Model: r.Model, Input: r.Usage.Prompt, Output: r.Usage.Output, Priority: r.Intent.Priority, Tier: r.Intent.Tier,
		Received: end.Add(-r.Total).UnixMilli(), Wait: ms(r.Sent), Prefill: ms(r.FirstByte - r.Sent), TTFT: ms(r.FirstByte), Total: ms(r.Total),
		Worker: traceWorker{uint32(r.Decision.Worker)},
		Replay: traceReplay{BlockSize: r.BlockSize, Length: r.Usage.Prompt},
	}
	if r.Usage.Output > 1 {
		q.Between = ms(r.Total-r.FirstByte) / float64(r.Usage.Output-1)
	}
	if !r.Usage.CachedEstimated {
		q.Cached = &r.Usage.Cached
	}
	for _, h := range r.Hashes {
		q.Replay.Hashes = append(q.Replay.Hashes, t.encrypt(0, h))
	}
	if int64(len(r.Hashes)*r.BlockSize) < r.Usage.Prompt { // engines do not share incomplete blocks
		q.Replay.Hashes = append(q.Replay.Hashes, t.name(r.EngineRequestID))
	}
	line := traceRecord{Schema: "dynamo.request.trace.v1", Type: "request_end", Time: end.UnixMilli(), Request: q}
	if s := &r.Intent.Session; s.ID != "" {
		line.Context = &traceSession{ID: t.session(r, s.ID), Final: s.Final, Trigger: string(r.Intent.Trigger)}
		if s.Parent != "" {
			line.Context.Parent = t.session(r, s.Parent)
		}
		if r.Intent.Compaction != nil {
			line.Context.Compaction = &struct{}{}
		}
	}
	data, err := json.Marshal(line)
	if err != nil {
		panic(err) // of finite numbers and strings
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return
	}
	if _, err := t.to.Write(append(data, '\n')); err != nil {
		t.log.Error("trace ended", "err", err)
		t.to = nil
	}
}

// session returns the name of a session of the tenant of r.
func (t *requestTrace) session(r serve.Record, id string) string {
	return fmt.Sprintf("%016x", t.name(r.Tenant+"\x00"+r.Intent.Salt+"\x00"+id))
}

// name returns what replaces a string.
func (t *requestTrace) name(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return t.encrypt(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
}

func (t *requestTrace) encrypt(a, b uint64) uint64 {
	var block [aes.BlockSize]byte
	binary.LittleEndian.PutUint64(block[:], a)
	binary.LittleEndian.PutUint64(block[8:], b)
	t.key.Encrypt(block[:], block[:])
	return binary.LittleEndian.Uint64(block[:])
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
