// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// stageNames lists the stages in the order of the table.
var stageNames = []string{"read", "decode", "strip", "verify", "hints", "render", "encode", "hash", "place", "decoder", "engine_body"}

// stages runs the steps of a turn one by one, by the public functions that the gateway calls for them and in its order:
// see call.read, call.follow, call.choose and engine.complete in examples/gateway/serve.
type stages struct {
	model     *prompt.Model
	signer    *replay.Signer
	target    *intent.Target
	router    *router.Router
	workers   []worker
	histories map[string]*preamble.History
	memo      *prompt.Memo
	client    []byte // memory of the client's body
	tokens    int    // of the last prompt
	cached    int    // of these, tokens that its worker held
}

// newStages returns stages without any history.
func newStages(model *prompt.Model, signer *replay.Signer) (*stages, error) {
	s := &stages{model: model, signer: signer, router: router.New(index.New(blockSize, nil), &router.Options{}), histories: map[string]*preamble.History{}, memo: prompt.NewMemo(memoBytes)}
	var err error
	if s.target, err = intent.NewTarget("vllm", ""); err != nil {
		return nil, err
	}
	for i := range workers {
		id, err := s.router.AddWorker(index.Key{Instance: fmt.Sprint("e", i)}, policy.Both, nil)
		if err != nil {
			return nil, err
		}
		s.workers = append(s.workers, worker{Stream: s.router.Index().NewStream(id, nil)})
	}
	return s, nil
}

func (s *stages) last() (tokens, cached int) { return s.tokens, s.cached }

func (s *stages) streams() []worker { return s.workers }

// Close implements server.
func (s *stages) Close() {}

// take implements server, with the stages in stageNames.
func (s *stages) take(v *conversation, k int, m *meter) ([]cost, error) {
	out := make([]cost, len(stageNames))
	var fault error
	step := func(stage int, f func() error) {
		if fault != nil {
			return
		}
		c := m.measure(func() { fault = f() })
		out[stage].add(c)
		if fault != nil {
			fault = fmt.Errorf("%s: %w", stageNames[stage], fault)
		}
	}
	r := newRequest(v, k)
	now := time.Now()
	var body []byte
	turn := s.memo.Turn("", "", "")
	var req *block.Request
	var in intent.Intent
	var text *prompt.Prompt
	var ids []uint32
	var place router.Request
	var ticket *router.Ticket
	step(0, func() error {
		if n := int(r.ContentLength); cap(s.client) < n {
			s.client = make([]byte, n+n/4)
		}
		body = s.client[:r.ContentLength]
		_, err := io.ReadFull(http.MaxBytesReader(nil, r.Body, 64<<20), body)
		return err
	})
	step(1, func() (err error) {
		req, err = turn.Decode(wire.Messages, body, &block.Limits{Body: 64 << 20})
		return err
	})
	step(4, func() error {
		in, _ = intent.Read(intent.Source{API: "messages", Header: r.Header, Field: req.Field})
		return nil
	})
	step(2, func() error {
		_, err := preamble.Stabilize(req, nil)
		return err
	})
	step(3, func() error {
		found, err := wire.CheckReasoning(req, s.signer.With("\x00"+in.Salt))
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("reasoning is not accepted: %v", found[0])
		}
		return err
	})
	step(4, func() error {
		in.Breakpoints, _ = wire.Breakpoints(req)
		in.Trigger = wire.Trigger(req)
		var p intent.Policy
		in, _ = p.Clamp("", in)
		return nil
	})
	step(5, func() (err error) {
		text, err = turn.Render(s.model, req, now)
		return err
	})
	step(6, func() error {
		text.Namespace = in.Salt
		ids = text.IDs()
		return nil
	})
	step(4, func() error {
		marks, _ := text.Breakpoints(req)
		in.Breakpoints = text.Tokens(s.model.Tokenizer(), marks, ids, text.Cuts()...)
		intent.Holds(in.Breakpoints, blockSize)
		h := s.histories[in.Session.ID]
		if h == nil {
			h = new(preamble.History)
			s.histories[in.Session.ID] = h
		}
		h.Next(req, &preamble.CompareOptions{Prompt: s.model.Preamble()})
		return nil
	})
	step(7, func() error {
		chain := kvhash.NewChain(blockSize, kvhash.Scheme{}.With("", in.Salt))
		kept, n := text.Kept()
		if k, ok := kept.(*kvhash.Chain); ok {
			chain = k.Fork()
			chain.Truncate(min(len(chain.Blocks()), n/blockSize))
		}
		chain.Append(ids[len(chain.Blocks())*blockSize:]...)
		text.Keep(chain, 9*len(chain.Blocks()))
		place = router.Request{Hashes: chain.Blocks(), Tokens: len(ids), Intent: in}
		return nil
	})
	step(8, func() (err error) {
		ticket, err = s.router.Offer(&place, now)
		return err
	})
	var dec *prompt.Decoder
	step(9, func() (err error) {
		dec, err = s.model.NewDecoder(req, text, &prompt.DecoderOptions{ID: "id", EngineStops: true})
		return err
	})
	step(10, func() error {
		body := append(dec.AppendFields(nil, modelName), `,"prompt":[`...)
		in.RequestID = "id"
		hints := s.target.Emit(&in)
		fields, err := hints.AppendBody(nil, []byte("{}"))
		if err == nil {
			_, err = (&net.Buffers{body, text.IDList(), append([]byte("],"), fields[1:]...)}).WriteTo(io.Discard)
		}
		return err
	})
	if ticket != nil {
		s.tokens, s.cached = len(ids), ticket.Decision().CachedEstimate
		ticket.FirstToken(now)
		ticket.Finish(now, -1, 20)
	}
	return out, fault
}
