// SPDX-License-Identifier: Apache-2.0

package models

import (
	"time"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// limits bounds what is read of a server's answer: its model cards may be long.
var limits = jsonscan.Limits{Bytes: 64 << 20, Depth: 128, Values: 1 << 20}

// DecodeList reads the list of models of a server, in either form or as a bare array. Members of other types than
// expected are passed over; only a model without id is an error. Strings are views of body. Errors are *[block.Error].
func DecodeList(body []byte) ([]Model, error) {
	doc, err := jsonscan.Scan(body, limits)
	if err != nil {
		return nil, streamdec.Fault(err)
	}
	list := doc.Root()
	if list.Kind() == jsonscan.Object {
		if data := list.Get("data"); data.Exists() {
			list = data
		}
	}
	if list.IsNull() { // a server without models
		return nil, nil
	}
	if list.Kind() != jsonscan.Array {
		return nil, streamdec.Wrong(list, "a list of models")
	}
	out := make([]Model, 0, list.Len())
	for e := list.First(); e.Exists(); e = list.Next(e) {
		m, err := decode(e)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// DecodeModel reads the description of one model in either form. See [DecodeList].
func DecodeModel(body []byte) (Model, error) {
	doc, err := jsonscan.Scan(body, limits)
	if err != nil {
		return Model{}, streamdec.Fault(err)
	}
	return decode(doc.Root())
}

func decode(v jsonscan.Value) (Model, error) {
	str := func(name string) string {
		s, _ := v.Get(name).Str(nil)
		return s
	}
	count := func(names ...string) int64 {
		for _, name := range names {
			if n, ok := v.Get(name).Int(); ok && n > 0 {
				return n
			}
		}
		return 0
	}
	m := Model{
		ID: str("id"), OwnedBy: str("owned_by"), DisplayName: str("display_name"), Root: str("root"), Parent: str("parent"),
		ContextWindow:   count("max_model_len", "context_window", "context_length"),
		MaxInputTokens:  count("max_input_tokens"),
		MaxOutputTokens: count("max_output_tokens", "max_tokens"),
		Raw:             v.Raw(),
	}
	if m.ID == "" {
		off, _ := v.Span()
		path := jsonscan.AppendPathKey([]byte(v.Path()), []byte("id"))
		return m, &block.Error{Kind: block.WrongType, Path: string(path), Offset: int64(off), Msg: "a string is required", Answer: true}
	}
	if c := v.Get("capabilities"); c.Kind() == jsonscan.Object {
		m.Capabilities = c.Raw()
	}
	if f, ok := v.Get("created").Float(); ok && f > 0 && f <= maxCreated {
		m.Created = int64(f)
	} else if t, err := time.Parse(time.RFC3339, str("created_at")); err == nil {
		m.Created = max(0, t.Unix())
	}
	return m, nil
}
