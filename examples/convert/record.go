// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

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

// record is a line of input. Its members are read one by one, so that a bad one does not cost the id.
type record struct {
	ID      json.RawMessage `json:"id"`
	From    json.RawMessage `json:"from"`
	To      json.RawMessage `json:"to"`
	Body    json.RawMessage `json:"body"`
	BodyB64 json.RawMessage `json:"body_b64"`
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

// fault says why a record was not converted. Offset is in bytes of the body. Line counts from 1; it and File are given where
// the record itself cannot be read.
type fault struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Losses  []loss `json:"losses,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

func (c *converter) record(line []byte) answer {
	var rec record
	if err := rec.read(line); err != nil {
		return answer{Error: &fault{Kind: "record", Message: err.Error()}}
	}
	ans := answer{ID: rec.ID}
	job, err := c.job(&rec)
	if err != nil {
		ans.Error = &fault{Kind: "record", Message: err.Error()}
		return ans
	}
	out, losses, err := c.convert(&job)
	if err != nil {
		ans.Error = faultOf(err)
		return ans
	}
	s := string(out)
	ans.Body, ans.Losses = &s, lossesOf(losses)
	return ans
}

func (r *record) read(line []byte) error {
	err := json.Unmarshal(line, r)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the line is not JSON: %w at byte %d", e, max(e.Offset-1, 0))
	}
	if err != nil || bytes.TrimSpace(line)[0] != '{' { // null is read as no record
		return errors.New("the line is not a JSON object")
	}
	return nil
}

// job is a record with all that it leaves to the flags.
type job struct {
	from, to string
	body     []byte
}

func (c *converter) job(r *record) (j job, err error) {
	if j.from, err = text("from", r.From); err != nil {
		return j, err
	}
	if j.to, err = text("to", r.To); err != nil {
		return j, err
	}
	j.from, j.to = cmp.Or(j.from, c.from), cmp.Or(j.to, c.to)
	j.body, err = r.body()
	return j, err
}

func (r *record) body() ([]byte, error) {
	b64, err := text("body_b64", r.BodyB64)
	if err != nil {
		return nil, err
	}
	if given(r.BodyB64) {
		body, err := base64.StdEncoding.DecodeString(b64)
		if err != nil {
			return nil, fmt.Errorf("body_b64: %w", err)
		}
		return body, nil
	}
	switch {
	case len(r.Body) == 0:
		return nil, errors.New("the record has no body")
	case r.Body[0] != '"':
		return r.Body, nil
	}
	s, err := text("body", r.Body)
	return []byte(s), err
}

// given reports whether a record has a member.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// text returns the text of a member that is a string, "" if it is not given. What no text can hold is an error: decoding would put
// something else in its place.
func text(member string, raw json.RawMessage) (s string, err error) {
	switch {
	case !given(raw):
		return "", nil
	case raw[0] != '"':
		return "", fmt.Errorf("%s is not a string", member)
	case !utf8.Valid(raw):
		return "", fmt.Errorf("%s is not valid UTF-8: give bytes that are no text as body_b64", member)
	case lone(raw):
		return "", fmt.Errorf("%s has half of a surrogate pair: escape it as the body has it, with two backslashes, or use body_b64", member)
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

// lone reports whether a JSON string escapes half of a surrogate pair without the other.
func lone(raw []byte) bool {
	var half rune // the first of a pair, right before
	for i := 1; i < len(raw); i++ {
		c := rune(raw[i])
		if c == '\\' {
			if i++; raw[i] == 'u' {
				n, _ := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16) // it was read as JSON before
				c, i = rune(n), i+4
			}
		}
		switch {
		case half != 0:
			if utf16.DecodeRune(half, c) == utf8.RuneError {
				return true // at the latest at the closing quote
			}
			half = 0
		case c >= 0xDC00 && c <= 0xDFFF:
			return true
		case c >= 0xD800 && c <= 0xDBFF:
			half = c
		}
	}
	return false
}

func (c *converter) convert(j *job) ([]byte, []block.Loss, error) {
	from, err := apiOf(j.from)
	if err != nil {
		return nil, nil, err
	}
	to, err := apiOf(j.to)
	if err != nil {
		return nil, nil, err
	}
	r, err := from.decode(j.body, nil)
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
