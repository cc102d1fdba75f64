// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"container/list"
	"encoding/json"
	"sync"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file stores conversations of the Responses API, so that a client can send previous_response_id and what is new:
//
//	join   completes the input of a request
//	keep   stores a response, with the input that led to it

// A store holds conversations in memory, up to a number of bytes; those that were not used for longest go first. It is safe
// for concurrent use by multiple goroutines.
type store struct {
	limit int64 // bytes

	mu     sync.Mutex
	bytes  int64
	byID   map[storeKey]*list.Element
	recent list.List // of *stored, most recent first
}

// A storeKey identifies a response. One client never gets the response of another.
type storeKey struct {
	tenant string
	client *client
	id     string
}

type stored struct {
	key   storeKey
	items []byte // input and output, JSON objects with commas between them
}

// storedOverhead is the memory of an entry besides its items, in bytes.
const storedOverhead = 512

// newStore returns a store, or nil for a limit of 0.
func newStore(limit int64) *store {
	if limit == 0 {
		return nil
	}
	return &store{limit: limit, byID: make(map[storeKey]*list.Element)}
}

// get returns the items of a response. The caller must not modify them.
func (s *store) get(k storeKey) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[k]
	if !ok {
		return nil, false
	}
	s.recent.MoveToFront(e)
	return e.Value.(*stored).items, true
}

// put stores items, which it takes ownership of.
func (s *store) put(k storeKey, items []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[k] = s.recent.PushFront(&stored{k, items})
	s.bytes += int64(len(items)) + storedOverhead
	for s.bytes > s.limit {
		last := s.recent.Remove(s.recent.Back()).(*stored)
		delete(s.byID, last.key)
		s.bytes -= int64(len(last.items)) + storedOverhead
	}
}

func (c *call) storeKey(id string) storeKey { return storeKey{c.rec.Tenant, c.client, id} }

// join returns the body with the whole conversation as its input, and notes the input for keep.
func (c *call) join(body []byte) ([]byte, error) {
	if c.g.store == nil || c.api != wire.Responses {
		return body, nil
	}
	var r struct {
		Previous *string         `json:"previous_response_id"`
		Store    *bool           `json:"store"`
		Input    json.RawMessage `json:"input"`
	}
	if json.Unmarshal(body, &r) != nil {
		return body, nil // Decode has the position of the fault
	}
	input := inputItems(r.Input)
	if r.Previous != nil && *r.Previous != "" {
		past, ok := c.g.store.get(c.storeKey(*r.Previous))
		if !ok {
			return nil, &apierr.Error{Why: event.Invalid, Code: "previous_response_not_found", Param: "previous_response_id",
				Message: "Previous response with id '" + *r.Previous + "' not found. Send the whole conversation."}
		}
		input = joinItems(past, input)
		if err := c.memory.add(int64(len(input)) * perByte); err != nil {
			return nil, err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return body, nil
		}
		fields["input"] = append(append([]byte{'['}, input...), ']')
		joined, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		if body, c.joined = joined, true; int64(len(body)) > c.g.opt.MaxBody {
			return nil, apierr.TooLarge(c.g.opt.MaxBody)
		}
	}
	if r.Store == nil || *r.Store {
		c.items = bytes.Clone(input)
	}
	return body, nil
}

// inputItems returns the items of an input, without brackets.
func inputItems(input json.RawMessage) []byte {
	input = bytes.TrimSpace(input)
	switch {
	case len(input) > 1 && input[0] == '[':
		return bytes.TrimSpace(input[1 : len(input)-1])
	case len(input) > 0 && input[0] == '"':
		return append(append([]byte(`{"role":"user","content":`), input...), '}')
	}
	return nil
}

// joinItems returns a new list of both.
func joinItems(a, b []byte) []byte {
	out := append(make([]byte, 0, len(a)+len(b)+1), a...)
	if len(a) > 0 && len(b) > 0 {
		out = append(out, ',')
	}
	return append(out, b...)
}

// keep stores the response in data, the end of a stream or a whole body, unless the client does not want it.
func (c *call) keep(data []byte) {
	if c.items == nil {
		return
	}
	type response struct {
		ID     string          `json:"id"`
		Output json.RawMessage `json:"output"`
	}
	var whole response
	if json.Unmarshal(data, &whole) != nil {
		for line := range bytes.Lines(data) {
			var ev struct {
				Response response `json:"response"`
			}
			if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok && json.Unmarshal(text, &ev) == nil && ev.Response.Output != nil {
				whole = ev.Response
			}
		}
	}
	if whole.ID == "" {
		return
	}
	c.g.store.put(c.storeKey(whole.ID), joinItems(c.items, inputItems(whole.Output)))
}
