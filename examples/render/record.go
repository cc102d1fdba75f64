// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// output is one line of output.
type output struct {
	ID     json.RawMessage `json:"id"`
	Prompt *string         `json:"prompt,omitempty"`
	IDs    *[]uint32       `json:"ids,omitempty"`
	Spans  *[]span         `json:"spans,omitempty"`
	Losses []loss          `json:"losses,omitempty"`
	// Breakpoints and Faults are omitted if empty.
	Breakpoints []breakpoint `json:"breakpoints,omitempty"`
	Faults      []loss       `json:"faults,omitempty"`
	Error       string       `json:"error,omitempty"`
}

type breakpoint struct {
	Path   string  `json:"path"`
	Byte   int     `json:"byte"`
	Tokens int     `json:"tokens"`
	TTL    float64 `json:"ttl"` // seconds
	Scope  string  `json:"scope,omitempty"`
}

type span struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Bytes  [2]int `json:"bytes"`
	Tokens [2]int `json:"tokens"`
	At     string `json:"at,omitempty"` // path in the body
}

type loss struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func (c *command) record(line []byte) output {
	var rec struct {
		ID   json.RawMessage
		API  string
		Body json.RawMessage
	}
	err := json.Unmarshal(line, &rec)
	ans := output{ID: rec.ID}
	if err == nil {
		err = c.render(rec.API, rec.Body, &ans)
	}
	if err != nil {
		ans = output{ID: rec.ID, Error: err.Error()}
	}
	return ans
}

func (c *command) render(api string, body json.RawMessage, ans *output) error {
	switch {
	case len(body) == 0:
		return errors.New("no body")
	case body[0] == '"':
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return err
		}
		body = []byte(text)
	}
	from, err := wire.Lookup(cmp.Or(api, "chat"))
	if err != nil || from == wire.Completions {
		return fmt.Errorf("unknown API %q: want chat, responses or messages", api)
	}
	req, err := from.Decode(body, nil)
	if err != nil {
		return err
	}
	p, err := c.model.Render(req, c.now())
	if err != nil {
		return cmp.Or(errors.Unwrap(err), err) // the template's message
	}
	for _, l := range p.Losses {
		ans.Losses = append(ans.Losses, loss{l.Path, l.Why})
	}
	segs := []tokenizers.Segment{{Text: p.Text, Trusted: true}}
	if c.segments {
		segs = p.Segments
	}
	var e tokenizers.Encoding
	if err := c.model.Tokenizer().Encode(&e, segs, &tokenizers.EncodeOptions{Offsets: true}); err != nil {
		return err
	}
	ids := append([]uint32{}, e.IDs...)
	spans := spansOf(p, e.Offsets)
	marks, faults := p.Breakpoints(req)
	for i, b := range p.Tokens(c.model.Tokenizer(), marks, ids) {
		ans.Breakpoints = append(ans.Breakpoints, breakpoint{marks[i].Path, marks[i].Byte, b.Tokens, b.TTL.Seconds(), b.Scope})
	}
	for _, f := range faults {
		ans.Faults = append(ans.Faults, loss{f.Where, f.Why})
	}
	ans.Prompt, ans.IDs, ans.Spans = &p.Text, &ids, &spans
	return nil
}

// spansOf adds the tokens to the spans of a prompt.
func spansOf(p *prompt.Prompt, offs []tokenizers.Offset) []span {
	spans := make([]span, 0, len(p.Spans))
	at := p.Paths()
	for i, s := range p.Spans {
		first := sort.Search(len(offs), func(i int) bool { return offs[i].End > s.Start })
		end := sort.Search(len(offs), func(i int) bool { return offs[i].Start >= s.End })
		spans = append(spans, span{s.Path, s.Kind, [2]int{s.Start, s.End}, [2]int{first, max(first, end)}, at[i]})
	}
	return spans
}
