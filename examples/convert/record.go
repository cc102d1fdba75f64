// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// converter holds the settings of a run.
type converter struct {
	from, to     string
	strict, anew bool
}

// api reads and writes requests of one API.
type api struct {
	decode func(body []byte, l *block.Limits) (*block.Request, error)
	encode func(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error)
}

func apiOf(name string) (api, error) {
	switch name {
	case "chat":
		return api{chat.Decode, chat.Encode}, nil
	case "responses":
		return api{responses.Decode, responses.Encode}, nil
	case "messages":
		return api{messages.Decode, messages.Encode}, nil
	case "completions":
		return api{completions.Decode, completions.Encode}, nil
	}
	return api{}, fmt.Errorf("no API %q: chat, responses, messages and completions are known", name)
}

// record is a line of input.
type record struct {
	ID      json.RawMessage `json:"id"`
	From    string          `json:"from"`
	To      string          `json:"to"`
	Body    json.RawMessage `json:"body"`
	BodyB64 []byte          `json:"body_b64"`
}

// answer is a line of output.
type answer struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Body   *string         `json:"body,omitempty"`
	Losses []loss          `json:"losses,omitzero"`
	Error  *fault          `json:"error,omitempty"`
}

type loss struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// fault says why a record was not converted. Offset is in bytes of the body.
type fault struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Losses  []loss `json:"losses,omitempty"`
}

func (c *converter) record(line []byte) answer {
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil {
		return answer{Error: &fault{Kind: "record", Message: err.Error()}}
	}
	ans := answer{ID: rec.ID}
	body, err := rec.body()
	if err != nil {
		ans.Error = &fault{Kind: "record", Message: err.Error()}
		return ans
	}
	out, losses, err := c.convert(body, &rec)
	if err != nil {
		ans.Error = faultOf(err)
		return ans
	}
	text := string(out)
	ans.Body, ans.Losses = &text, lossesOf(losses)
	return ans
}

func (r *record) body() ([]byte, error) {
	if r.BodyB64 != nil {
		return r.BodyB64, nil
	}
	if len(r.Body) == 0 {
		return nil, errors.New("the record has no body")
	}
	if r.Body[0] != '"' {
		return r.Body, nil
	}
	var s string
	err := json.Unmarshal(r.Body, &s)
	return []byte(s), err
}

func (c *converter) convert(body []byte, rec *record) ([]byte, []block.Loss, error) {
	name := func(s, def string) string {
		if s == "" {
			return def
		}
		return s
	}
	from, err := apiOf(name(rec.From, c.from))
	if err != nil {
		return nil, nil, err
	}
	to, err := apiOf(name(rec.To, c.to))
	if err != nil {
		return nil, nil, err
	}
	r, err := from.decode(body, nil)
	if err != nil {
		return nil, nil, err
	}
	if c.anew {
		if err := r.Detach(); err != nil {
			return nil, nil, err
		}
	}
	return to.encode(nil, r, &block.EncodeOptions{Strict: c.strict})
}

func lossesOf(list []block.Loss) []loss {
	out := make([]loss, len(list))
	for i, l := range list {
		out[i] = loss{l.Path, l.Why}
	}
	return out
}

func faultOf(err error) *fault {
	if e, ok := errors.AsType[*block.Error](err); ok {
		f := &fault{Kind: e.Kind.String(), Message: e.Error(), Path: e.Path}
		if e.Offset >= 0 {
			f.Offset = &e.Offset
		}
		return f
	}
	if e, ok := errors.AsType[*block.LossError](err); ok {
		return &fault{Kind: "loss", Message: e.Error(), Losses: lossesOf(e.Losses)}
	}
	return &fault{Kind: "usage", Message: err.Error()}
}
