// SPDX-License-Identifier: Apache-2.0

package completionsanswer

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// probs converts a list of the Chat API's entries,
//
//	[{"token":"a","logprob":-0.1,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.1},…]},…]
//
// to the parallel lists of this API:
//
//	{"tokens":["a"],"token_logprobs":[-0.1],"top_logprobs":[{"a":-0.1,…}],"text_offset":[0]}
//
// Numbers keep their spelling. Of several candidates with the same text, only the first and most likely is kept,
// because an object cannot have duplicate names. Offsets continue from list to list. The memory is reused.
type probs struct {
	scan   jsonscan.Scanner
	buf    []byte
	seen   [][]byte // candidates of one token
	offset int

	tokens, values, tops, offsets []byte // elements, separated by commas
}

// probLimits are the limits of the list of one event.
var probLimits = jsonscan.Limits{Bytes: 64 << 20, Depth: 16, Values: 1 << 20}

// read replaces the contents of p by a list. It returns false if the list is malformed or empty.
func (p *probs) read(list []byte) bool {
	d, err := p.scan.Scan(list, probLimits)
	if err != nil {
		return false
	}
	p.tokens, p.values, p.tops, p.offsets, p.buf = p.tokens[:0], p.values[:0], p.tops[:0], p.offsets[:0], p.buf[:0]
	offset := p.offset
	root := d.Root()
	for e := root.First(); e.Exists(); e = root.Next(e) {
		token, ok := e.Get("token").Text(&p.buf)
		if !ok {
			p.offset = offset
			return false
		}
		if len(p.tokens) > 0 {
			p.tokens, p.values = append(p.tokens, ','), append(p.values, ',')
			p.tops, p.offsets = append(p.tops, ','), append(p.offsets, ',')
		}
		p.tokens = jsonw.AppendString(p.tokens, token)
		p.values = appendNumber(p.values, e.Get("logprob"))
		p.tops = p.appendTop(p.tops, e.Get("top_logprobs"))
		p.offsets = strconv.AppendInt(p.offsets, int64(p.offset), 10)
		p.offset += utf8.RuneCount(token)
	}
	return len(p.tokens) > 0
}

func (p *probs) appendTop(dst []byte, list jsonscan.Value) []byte {
	if list.Kind() != jsonscan.Array {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	p.seen = p.seen[:0]
	var many map[string]bool
	for e := list.First(); e.Exists(); e = list.Next(e) {
		token, ok := e.Get("token").Text(&p.buf)
		if !ok {
			continue
		}
		if len(p.seen) == 64 { // the APIs allow 5 or 20; engines can send the whole vocabulary
			many = make(map[string]bool, 1024)
			for _, t := range p.seen {
				many[string(t)] = true
			}
		}
		if many[string(token)] || many == nil && slices.ContainsFunc(p.seen, func(t []byte) bool { return bytes.Equal(t, token) }) {
			continue
		}
		if many != nil {
			many[string(token)] = true
		}
		if p.seen = append(p.seen, token); len(p.seen) > 1 {
			dst = append(dst, ',')
		}
		dst = jsonw.AppendString(dst, token)
		dst = append(dst, ':')
		dst = appendNumber(dst, e.Get("logprob"))
	}
	return append(dst, '}')
}

func appendNumber(dst []byte, v jsonscan.Value) []byte {
	if v.Kind() != jsonscan.Number {
		return append(dst, "null"...)
	}
	return append(dst, v.Raw()...)
}

// join appends the lists of o to the lists of p. The offsets of o must continue those of p.
func (p *probs) join(o *probs) {
	add := func(dst *[]byte, src []byte) {
		if len(*dst) > 0 {
			*dst = append(*dst, ',')
		}
		*dst = append(*dst, src...)
	}
	add(&p.tokens, o.tokens)
	add(&p.values, o.values)
	add(&p.tops, o.tops)
	add(&p.offsets, o.offsets)
}

// append appends the lists as an object.
func (p *probs) append(dst []byte) []byte {
	dst = append(append(dst, `{"tokens":[`...), p.tokens...)
	dst = append(append(dst, `],"token_logprobs":[`...), p.values...)
	dst = append(append(dst, `],"top_logprobs":[`...), p.tops...)
	dst = append(append(dst, `],"text_offset":[`...), p.offsets...)
	return append(dst, `]}`...)
}

// appendEntries is the reverse: it appends the Chat API's list for the object v. ok is false if v has no tokens.
func appendEntries(dst []byte, v jsonscan.Value) (out []byte, ok bool) {
	tokens, values, tops := v.Get("tokens"), v.Get("token_logprobs"), v.Get("top_logprobs")
	if tokens.Kind() != jsonscan.Array || !tokens.First().Exists() {
		return dst, false
	}
	dst = append(dst, '[')
	value, top := values.First(), tops.First()
	n := 0
	for t := tokens.First(); t.Exists(); t = tokens.Next(t) {
		if t.Kind() == jsonscan.String {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, `{"token":`...), t.Raw()...)
			dst = append(dst, `,"logprob":`...)
			dst = appendNumber(dst, value)
			dst = append(dst, `,"bytes":null,"top_logprobs":[`...)
			k := 0
			for m := top.First(); m.Exists() && top.Kind() == jsonscan.Object; m = top.Next(m) {
				if k++; k > 1 {
					dst = append(dst, ',')
				}
				dst = jsonw.AppendString(append(dst, `{"token":`...), m.Key())
				dst = append(dst, `,"logprob":`...)
				dst = append(appendNumber(dst, m), `,"bytes":null}`...)
			}
			dst = append(dst, `]}`...)
		}
		if value.Exists() {
			value = values.Next(value)
		}
		if top.Exists() {
			top = tops.Next(top)
		}
	}
	return append(dst, ']'), true
}
