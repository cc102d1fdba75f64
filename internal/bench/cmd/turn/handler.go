// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

const (
	modelName = "m"
	workers   = 16
	holders   = 4 // workers that hold the last turn
	blockSize = 16
	maxWindow = 1 << 19 // tokens
	memoBytes = 64 << 20
)

// A worker's stream of cache events and its next number.
type worker struct {
	*index.Stream
	seq uint64
}

// add adds an event.
func (w *worker) add(e kvevent.Event) {
	w.Stream.Add(kvevent.Batch{Seq: w.seq, Events: []kvevent.Event{e}})
	w.seq++
}

// holding makes the first workers hold the blocks hashes[from:to], after those before from.
func holding(ws []worker, hashes []uint64, from, to int) {
	if from >= to {
		return
	}
	for i := range ws[:holders] {
		e := kvevent.Event{Kind: kvevent.Stored, BlockSize: blockSize, BlockHashes: hashes[from:to], SequenceHashes: hashes[from:to]}
		if from > 0 {
			e.Parent, e.HasParent = hashes[from-1], true
		}
		ws[i].add(e)
	}
}

// forget makes the workers hold nothing, as if they had evicted all blocks.
func forget(ws []worker) {
	for i := range ws {
		ws[i].add(kvevent.Event{Kind: kvevent.Cleared})
	}
}

// A handler is the gateway with stub engines.
type handler struct {
	*serve.Gateway
	workers []worker
	record  serve.Record // of the last request
}

// newHandler returns a gateway for model. The caller must call Close.
func newHandler(model *prompt.Model, signer *replay.Signer) (*handler, error) {
	h := &handler{}
	opt := serve.Options{
		Model: modelName, Prompts: model, MaxModelLen: maxWindow, BlockSize: blockSize, StripPreamble: true, Signer: signer, MemoBytes: memoBytes,
		OnDone: func(r serve.Record) { h.record = r },
	}
	for i := range workers {
		opt.Engines = append(opt.Engines, serve.Engine{Name: fmt.Sprint("e", i), URL: fmt.Sprintf("http://e%d.invalid", i), Events: func(s *index.Stream) (func(), error) {
			h.workers = append(h.workers, worker{Stream: s})
			return func() {}, nil
		}})
	}
	var err error
	h.Gateway, err = serve.New(&opt)
	return h, err
}

// newRequest returns a request of a conversation.
func newRequest(v *conversation, k int) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "/v1/messages", v.reader(k))
	if err != nil {
		panic(err)
	}
	r.ContentLength = int64(v.size(k))
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"claude-cli/2.1.330 (external, cli)"}, "Anthropic-Version": {"2023-06-01"},
		"Authorization": {"Bearer key"}, "X-Claude-Code-Session-Id": {v.id}, "X-App": {"cli"},
	}
	return r
}

// take implements server: the only stage is the whole.
func (h *handler) take(v *conversation, k int, m *meter) ([]cost, error) {
	r, w := newRequest(v, k), &discard{header: http.Header{}, status: http.StatusOK}
	c := m.measure(func() { h.ServeHTTP(w, r) })
	if w.status != http.StatusOK || w.bytes == 0 || h.record.Finish != event.Stop.String() {
		return nil, fmt.Errorf("request %d: HTTP %d, %d bytes, finish %q", k, w.status, w.bytes, h.record.Finish)
	}
	return []cost{c}, nil
}

func (h *handler) last() (tokens, cached int) {
	return int(h.record.Usage.Prompt), h.record.Decision.CachedEstimate
}

func (h *handler) streams() []worker { return h.workers }

// check runs one request and returns an error if the response is not what the engine generated.
func (h *handler) check(v *conversation, k int) error {
	w := &discard{header: http.Header{}, status: http.StatusOK, keep: new(bytes.Buffer)}
	h.ServeHTTP(w, newRequest(v, k))
	var got event.Collector
	d := wire.Messages.NewDecoder(nil)
	for ev, err := range new(sse.Reader).Events(bytes.NewReader(w.keep.Bytes())) {
		if err != nil {
			return err
		}
		events, err := d.AppendEvent(nil, ev.Type, ev.Data)
		if err != nil {
			return err
		}
		got.Add(events...)
	}
	if w.status != http.StatusOK || len(got.Answers) != 1 || strings.TrimSpace(got.Answers[0].Reasoning()) != thought || strings.TrimSpace(got.Answers[0].Text()) != said {
		return fmt.Errorf("wrong response: HTTP %d: %.4000s", w.status, w.keep)
	}
	return nil
}

// hashesOf returns the hashes of the blocks of the last prompt of v, which begins with the others. It renders the
// prompt apart from what the gateway caches.
func hashesOf(model *prompt.Model, v *conversation) ([]uint64, error) {
	ids, err := render(model, v, len(v.ends)-1)
	return kvhash.Scheme{}.AppendBlocks(nil, ids, blockSize, nil), err
}

// render returns the ids of a prompt, apart from what the gateway caches.
func render(model *prompt.Model, v *conversation, k int) ([]uint32, error) {
	req, err := wire.Messages.Decode(v.body(k), nil)
	if err != nil {
		return nil, err
	}
	p, err := model.Render(req, time.Now())
	if err != nil {
		return nil, err
	}
	p.Namespace = "apart"
	return p.IDs(), nil
}
