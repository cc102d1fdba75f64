// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/protocols/embeddings"
	"github.com/weft-go/weft/tokenizers"
)

// A floor is a simple pass over the body of a request.
type floor struct {
	name string
	f    func() error
	n    int     // calls in a round
	ns   float64 // sum of the rounds' means
	runs int
}

// newFloors returns what any server must at least do with the body of a request, or does in a simple way. last is the
// body of the previous request.
func newFloors(last, body []byte, tok *tokenizers.Tokenizer) floors {
	dst := make([]byte, len(body))
	front, end := common(last, body)
	added := string(body[front : len(body)-end])
	var ids []uint32
	return floors{list: []floor{
		{name: "floor_copy", f: func() error { copy(dst, body); return nil }},
		{name: "floor_utf8", f: func() error {
			if !utf8.Valid(body) {
				return errors.New("invalid UTF-8")
			}
			return nil
		}},
		{name: "floor_compare", f: func() error { common(last, body); return nil }},
		// This scans the whole body with the scanner of all decoders, and then reads no more than the fields at its root.
		{name: "floor_scan", f: func() error { _, err := embeddings.Decode(body, nil); return err }},
		{name: "floor_encode", f: func() error { ids = tok.AppendEncode(ids[:0], added); return nil }},
		{name: "json_valid", f: func() error {
			if !json.Valid(body) {
				return errors.New("invalid JSON")
			}
			return nil
		}},
		{name: "json_any", f: func() error { var v any; return json.Unmarshal(body, &v) }},
	}}
}

// floors measures its list in turn.
type floors struct {
	list []floor
	next int
}

// measure adds a round of the next one.
func (x *floors) measure() {
	if len(x.list) > 0 {
		x.list[x.next%len(x.list)].measure()
		x.next++
	}
}

// measure adds a round of at least 2 ms.
func (x *floor) measure() {
	for x.n = max(x.n, 1); ; x.n *= 2 {
		t := bench.CPUTime()
		for range x.n {
			if err := x.f(); err != nil {
				panic("turn: " + x.name + ": " + err.Error()) // the gateway accepts the body
			}
		}
		if d := float64(bench.CPUTime() - t); d >= 2e6 {
			x.ns += d / float64(x.n)
			x.runs++
			return
		}
	}
}

// common returns the lengths of the common front and end of two bodies.
func common(a, b []byte) (front, end int) {
	const step = 4096
	for front+step <= min(len(a), len(b)) && bytes.Equal(a[front:front+step], b[front:front+step]) {
		front += step
	}
	for front < min(len(a), len(b)) && a[front] == b[front] {
		front++
	}
	limit := min(len(a), len(b)) - front
	for end+step <= limit && bytes.Equal(a[len(a)-end-step:len(a)-end], b[len(b)-end-step:len(b)-end]) {
		end += step
	}
	for end < limit && a[len(a)-end-1] == b[len(b)-end-1] {
		end++
	}
	return front, end
}
