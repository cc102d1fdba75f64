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

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/wire"
)

// converter holds the settings of a run.
type converter struct {
	from, to         string
	strict, reencode bool
	engine           string
}

// apis lists the APIs by name.
var apis = []string{"chat", "responses", "messages", "completions"}

func lookup(name string) (*wire.API, error) {
	if a, err := wire.Lookup(name); err == nil {
		return a, nil
	}
	return nil, cli.OneOf("API", name, apis...)
}

// record is one line of input. Its fields are decoded one by one, so that an invalid field does not lose the id.
type record struct {
	ID      json.RawMessage `json:"id"`
	From    json.RawMessage `json:"from"`
	To      json.RawMessage `json:"to"`
	Body    json.RawMessage `json:"body"`
	BodyB64 json.RawMessage `json:"body_b64"`
}

// output is one line of output.
type output struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Body   *string         `json:"body,omitempty"`
	Losses []loss          `json:"losses,omitzero"`
	Error  *fault          `json:"error,omitempty"`
}

type loss struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// fault is the reason why a record was not converted. Offset is in bytes of the body. Line, from 1, and File are set if
// the record itself is invalid.
type fault struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Losses  []loss `json:"losses,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// record converts a record. If neither it nor a flag specifies an API, missing is the name of that setting, "from" or "to".
func (c *converter) record(line []byte) (ans output, missing string) {
	var rec record
	if err := rec.read(line); err != nil {
		return output{Error: &fault{Kind: "record", Message: err.Error()}}, ""
	}
	ans = output{ID: rec.ID}
	job, err := c.job(&rec)
	if err != nil {
		ans.Error = &fault{Kind: "record", Message: err.Error()}
		return ans, ""
	}
	switch "" {
	case job.from:
		missing = "from"
	case job.to:
		missing = "to"
	}
	if missing != "" {
		ans.Error = &fault{Kind: "usage", Message: fmt.Sprintf("no API: set %q in the record or -%[1]s", missing)}
		return ans, missing
	}
	out, losses, err := c.convert(&job)
	if err != nil {
		ans.Error = faultOf(err, losses)
		return ans, ""
	}
	s := string(out)
	ans.Body, ans.Losses = &s, lossesOf(losses)
	return ans, ""
}

func (r *record) read(line []byte) error {
	err := json.Unmarshal(line, r)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("record is not JSON: %w at byte %d", e, max(e.Offset-1, 0))
	}
	if err != nil || bytes.TrimSpace(line)[0] != '{' { // null would decode to an empty record
		return errors.New("record is not a JSON object")
	}
	return nil
}

// job is a record with the settings of the flags.
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
		return nil, errors.New("record has no body")
	case r.Body[0] != '"':
		return r.Body, nil
	}
	s, err := text("body", r.Body)
	return []byte(s), err
}

// given reports whether a record has a field.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// text returns the text of a string field, or "" if absent. Invalid UTF-8 and lone surrogates are errors, since
// decoding would replace them.
func text(member string, raw json.RawMessage) (s string, err error) {
	switch {
	case !given(raw):
		return "", nil
	case raw[0] != '"':
		return "", fmt.Errorf("%s is not a string", member)
	case !utf8.Valid(raw):
		return "", fmt.Errorf("%s is not valid UTF-8; use body_b64", member)
	case lone(raw):
		return "", fmt.Errorf("%s has a lone surrogate: escape it with two backslashes, as in the body, or use body_b64", member)
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

// lone reports whether a JSON string escapes half of a surrogate pair without the other.
func lone(raw []byte) bool {
	var half rune // the preceding first half of a pair
	for i := 1; i < len(raw); i++ {
		c := rune(raw[i])
		if c == '\\' {
			if i++; raw[i] == 'u' {
				n, _ := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16) // the JSON is valid
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
	from, err := lookup(j.from)
	if err != nil {
		return nil, nil, err
	}
	to, err := lookup(j.to)
	if err != nil {
		return nil, nil, err
	}
	r, err := from.Decode(j.body, nil)
	if err != nil {
		return nil, nil, err
	}
	if c.reencode {
		if err := r.Detach(); err != nil {
			return nil, nil, err
		}
	}
	return to.AppendRequest(nil, r, &block.EncodeOptions{Strict: c.strict, Engine: c.engine})
}

func lossesOf(list []block.Loss) []loss {
	out := make([]loss, len(list))
	for i, l := range list {
		out[i] = loss{l.Path, l.Why}
	}
	return out
}

func faultOf(err error, losses []block.Loss) *fault {
	if len(losses) > 0 { // a strict conversion
		return &fault{Kind: "loss", Message: err.Error(), Losses: lossesOf(losses)}
	}
	if e, ok := errors.AsType[*block.Error](err); ok {
		f := &fault{Kind: e.Kind.String(), Message: e.Error(), Path: e.Path}
		if e.Offset >= 0 {
			f.Offset = &e.Offset
		}
		return f
	}
	return &fault{Kind: "usage", Message: err.Error()}
}
