// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

// This file stores responses of the Responses API, so that a client can send previous_response_id and what is new:
//
//	join        completes the input of a request: what came before, and items to which it refers
//	keep        stores a response, with the input that led to it
//	stored      returns or deletes a response
//	inputItems  lists the input of a response

// A Store holds responses in memory, up to a number of bytes; those that were not used for longest go first. Each key and
// tenant has its own. The zero Store keeps none; see Resize. It is safe for concurrent use by multiple goroutines.
type Store struct {
	mu     sync.Mutex
	limit  int64 // bytes
	bytes  int64
	byID   map[storeKey]*list.Element
	byItem map[storeKey]*list.Element // by the IDs of output items
	recent list.List                  // of *stored, most recent first
}

// A storeKey identifies a response, or an item of one. One client never gets the response of another. A key of the next configuration with
// the same secret is the same client.
type storeKey struct {
	tenant string
	secret [sha256.Size]byte // digest of the API key; zero without one
	socket *socket           // the connection to which the response belongs, or nil
	id     string
}

// A stored is a response. Its slices must not be modified.
type stored struct {
	key      storeKey
	input    []byte // all input that led to it: JSON objects with commas between them
	response []byte
	items    []storeKey // of its output
}

// newStored returns a response to store. It takes ownership of the slices.
func newStored(k storeKey, input, response []byte) *stored {
	one := &stored{key: k, input: input, response: response}
	for _, item := range one.output() {
		if id := itemID(item); id != "" {
			k.id = id
			one.items = append(one.items, k)
		}
	}
	return one
}

// output returns the output items.
func (s *stored) output() []json.RawMessage {
	var response struct{ Output []json.RawMessage }
	if json.Unmarshal(s.response, &response) != nil {
		return nil
	}
	return response.Output
}

// itemID returns the ID of an item, or "".
func itemID(item json.RawMessage) string {
	var head struct{ ID string }
	if json.Unmarshal(item, &head) != nil {
		return ""
	}
	return head.ID
}

// size returns the memory of an entry, in bytes.
func (s *stored) size() int64 { return int64(len(s.input)+len(s.response)+256*len(s.items)) + 512 }

// Resize sets the limit, in bytes.
func (s *Store) Resize(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.shrink()
}

func (s *Store) shrink() {
	for s.bytes > s.limit {
		s.remove(s.recent.Back())
	}
}

func (s *Store) remove(e *list.Element) {
	old := s.recent.Remove(e).(*stored)
	delete(s.byID, old.key)
	for _, k := range old.items {
		if s.byItem[k] == e {
			delete(s.byItem, k)
		}
	}
	s.bytes -= old.size()
}

// get returns a response, or nil.
func (s *Store) get(k storeKey) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[k]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(e)
	return e.Value.(*stored)
}

// item returns an item of the output of a response, or nil.
func (s *Store) item(k storeKey) json.RawMessage {
	s.mu.Lock()
	e, ok := s.byItem[k]
	if !ok {
		s.mu.Unlock()
		return nil
	}
	s.recent.MoveToFront(e)
	one := e.Value.(*stored)
	s.mu.Unlock()
	for _, item := range one.output() {
		if itemID(item) == k.id {
			return item
		}
	}
	return nil
}

// put stores a response.
func (s *Store) put(one *stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID, s.byItem = make(map[storeKey]*list.Element), make(map[storeKey]*list.Element)
	}
	e := s.recent.PushFront(one)
	s.byID[one.key] = e
	for _, k := range one.items {
		s.byItem[k] = e
	}
	s.bytes += one.size()
	s.shrink()
}

// drop deletes a response. It reports whether there was one.
func (s *Store) drop(k storeKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[k]
	if ok {
		s.remove(e)
	}
	return ok
}

func (c *call) storeKey(id string) storeKey {
	k := storeKey{tenant: c.rec.Tenant, id: id}
	if c.client != nil {
		k.secret = c.client.digest
	}
	return k
}

// lookUp calls f with the stores that may have a response that the request may continue, and the key of an id in each, until f
// returns true.
func (c *call) lookUp(id string, f func(s *Store, k storeKey) bool) {
	k := c.storeKey(id)
	if c.lane != nil {
		k.socket = c.lane.socket
		if f(&c.g.recent, k) {
			return
		}
		k.socket = nil
	}
	if c.g.opt.Store != nil {
		f(c.g.opt.Store, k)
	}
}

// past returns a response that the request may continue, or nil.
func (c *call) past(id string) (one *stored) {
	c.lookUp(id, func(s *Store, k storeKey) bool {
		one = s.get(k)
		return one != nil
	})
	return one
}

// item returns an output item of a response that the request may continue, or nil.
func (c *call) item(id string) (item json.RawMessage) {
	c.lookUp(id, func(s *Store, k storeKey) bool {
		item = s.item(k)
		return item != nil
	})
	return item
}

// resolve returns items, JSON objects with commas between them, in which the references to items of stored responses are those items. It
// reports whether there were any. References to others remain.
func (c *call) resolve(items []byte) (whole []byte, some bool) {
	var list []json.RawMessage
	if !bytes.Contains(items, []byte(`"id"`)) || json.Unmarshal(slices.Concat([]byte{'['}, items, []byte{']'}), &list) != nil {
		return items, false
	}
	for i := range list {
		var ref struct {
			Type, Role *string
			ID         string
		}
		if json.Unmarshal(list[i], &ref) != nil || ref.ID == "" || ref.Role != nil || ref.Type != nil && *ref.Type != "item_reference" {
			continue
		}
		if item := c.item(ref.ID); item != nil {
			list[i], some = item, true
		}
	}
	if !some {
		return items, false
	}
	parts := make([][]byte, len(list))
	for i, item := range list {
		parts[i] = item
	}
	return joinItems(parts...), true
}

// join returns the body with the whole conversation as its input, and notes the input for keep. It removes what only
// messages over WebSocket have, and sets store where that is the default. Errors have positions in the client's body.
func (c *call) join(body []byte) ([]byte, error) {
	if c.api != wire.Responses || c.g.opt.Store == nil && c.lane == nil {
		return body, nil
	}
	r, err := wire.Responses.Decode(body, &block.Limits{Body: int(c.g.opt.MaxBody)})
	if err != nil {
		return nil, err
	}
	input, resolved := c.resolve(itemsOf(r.Field("input")))
	previous, _ := responses.Thread(r)
	if c.joined = previous != ""; c.joined {
		past := c.past(previous)
		if past == nil {
			return nil, &apierr.Error{Why: event.Invalid, Code: "previous_response_not_found", Param: "previous_response_id",
				Message: "Previous response with id '" + previous + "' not found. Send the whole conversation."}
		}
		var response struct{ Output json.RawMessage }
		if err := json.Unmarshal(past.response, &response); err != nil {
			return nil, err
		}
		input = joinItems(past.input, itemsOf(response.Output), input)
	}
	if c.joined || resolved {
		if err := c.memory.add(int64(len(input)) * perByte); err != nil {
			return nil, err
		}
	}
	c.stored = c.g.opt.Store != nil && (!given(r, "store") || string(r.Field("store")) == "true")
	if c.stored || c.lane != nil {
		c.input = bytes.Clone(input)
	}
	changed := make(map[string][]byte) // nil removes a field
	if c.joined || resolved {
		changed["input"] = slices.Concat([]byte{'['}, input, []byte{']'})
	}
	if c.lane != nil {
		if err := mistyped(r, socketTypes); err != nil {
			return nil, err
		}
		c.warm = string(r.Field("generate")) == "false" || string(r.Field("prompt_cache_options", "prewarm")) == "true"
		changed["stream"] = []byte("true")
		changed["type"], changed["stream_id"], changed["generate"] = nil, nil, nil
	}
	if c.stored && !given(r, "store") {
		changed["store"] = []byte("true")    // the response repeats it
		c.hinted = append(c.hinted, "store") // what an endpoint stores by default is its own affair
	}
	if len(changed) == 0 {
		return body, nil
	}
	if body = replaceFields(r, changed); int64(len(body)) > c.g.opt.MaxBody {
		return nil, apierr.TooLarge(c.g.opt.MaxBody)
	}
	return body, nil
}

// replaceFields returns the body of a request with other values of the given fields, in the order of the body. Those that it does
// not have are added at the end. nil removes a field. It deletes from changed what it has written.
func replaceFields(r *block.Request, changed map[string][]byte) []byte {
	body := append(make([]byte, 0, len(r.Body())+len(changed["input"])+256), '{')
	add := func(name string, value []byte) {
		if value == nil {
			return
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		key, _ := json.Marshal(name) // a string has no error
		body = append(append(append(body, key...), ':'), value...)
	}
	for name, raw := range r.Fields() {
		if other, ok := changed[name]; ok {
			add(name, other)
			delete(changed, name)
			continue
		}
		add(name, raw())
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		add(name, changed[name])
	}
	return append(body, '}')
}

// appendFields appends an object. Unlike json.Marshal, it keeps the bytes of the values.
func appendFields(dst []byte, fields map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		key, _ := json.Marshal(name) // a string has no error
		dst = append(append(append(dst, key...), ':'), fields[name]...)
	}
	return append(dst, '}')
}

// itemsOf returns the items of an input or output, without brackets.
func itemsOf(list json.RawMessage) []byte {
	list = bytes.TrimSpace(list)
	switch {
	case len(list) > 1 && list[0] == '[':
		return bytes.TrimSpace(list[1 : len(list)-1])
	case len(list) > 0 && list[0] == '"':
		return slices.Concat([]byte(`{"role":"user","content":`), list, []byte{'}'})
	}
	return nil
}

// joinItems returns a new list of all items.
func joinItems(lists ...[]byte) []byte {
	return bytes.Join(slices.DeleteFunc(lists, func(l []byte) bool { return len(l) == 0 }), []byte{','})
}

// keep stores the response in data, the end of a stream or a whole body, unless the client does not want it. A connection
// keeps the last response of each lane.
func (c *call) keep(data []byte) {
	if !c.stored && c.lane == nil {
		return
	}
	response := json.RawMessage(data)
	for line := range bytes.Lines(data) {
		var ev struct{ Response json.RawMessage }
		if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok && json.Unmarshal(text, &ev) == nil && ev.Response != nil {
			response = ev.Response
		}
	}
	var head struct{ ID string }
	if json.Unmarshal(response, &head) != nil || head.ID == "" {
		return
	}
	k, response := c.storeKey(head.ID), bytes.Clone(response)
	if c.stored {
		c.g.opt.Store.put(newStored(k, c.input, response))
	}
	if c.lane != nil {
		c.g.recent.drop(c.lane.last)
		k.socket = c.lane.socket
		c.g.recent.put(newStored(k, c.input, response))
		c.lane.last = k
	}
}

// find returns the stored response that a request names, and a function that deletes it.
func (g *Gateway) find(w http.ResponseWriter, r *http.Request) (*stored, func(), error) {
	c := g.newCall(w, r, wire.Responses)
	if err := c.admit(r); err != nil {
		return nil, nil, err
	}
	defer c.release()
	if k := c.storeKey(r.PathValue("id")); g.opt.Store != nil {
		if one := g.opt.Store.get(k); one != nil {
			return one, func() { g.opt.Store.drop(k) }, nil
		}
	}
	return nil, nil, &apierr.Error{Why: event.NotFound, Param: "id", Message: fmt.Sprintf("Response with id '%.100s' not found.", r.PathValue("id"))}
}

// oneResponse returns or deletes a stored response.
func (g *Gateway) oneResponse(w http.ResponseWriter, r *http.Request) {
	one, remove, err := g.find(w, r)
	if err == nil && r.URL.Query().Get("stream") == "true" {
		err = &apierr.Error{Why: event.Invalid, Param: "stream", Code: apierr.CodeUnsupported, Message: "A stored response cannot be streamed again: send stream as false."}
	}
	switch {
	case err != nil:
		g.refuse(w, r, wire.Responses, err)
	case r.Method == http.MethodDelete:
		remove()
		writeBody(w, fmt.Appendf(nil, `{"id":%q,"object":"response","deleted":true}`, one.key.id))
	default:
		writeBody(w, one.response)
	}
}

// inputItems returns a page of the input of a stored response, by default the newest items first.
func (g *Gateway) inputItems(w http.ResponseWriter, r *http.Request) {
	one, _, err := g.find(w, r)
	var page []byte
	if err == nil {
		page, err = one.page(r.URL.Query().Get)
	}
	if err != nil {
		g.refuse(w, r, wire.Responses, err)
		return
	}
	writeBody(w, page)
}

// page returns a page of the input. Items without an id get one, and calls, results and responses without a status are completed.
func (s *stored) page(query func(string) string) ([]byte, error) {
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(slices.Concat([]byte{'['}, s.input, []byte{']'}), &items); err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(cmp.Or(query("limit"), "20"))
	if err != nil || limit < 1 || limit > 100 {
		return nil, apierr.Invalid("limit", "The limit must be a number from 1 to 100.")
	}
	ids := make([]string, len(items))
	for i, item := range items {
		if json.Unmarshal(item["id"], &ids[i]) != nil || ids[i] == "" {
			ids[i] = fmt.Sprintf("item_%s_%d", s.key.id, i)
			item["id"] = json.RawMessage(strconv.Quote(ids[i]))
		}
		if item["type"] == nil {
			item["type"] = json.RawMessage(`"message"`)
		}
		switch kind := string(item["type"]); {
		case item["status"] != nil:
		case kind == `"function_call"`, kind == `"function_call_output"`, kind == `"message"` && string(item["role"]) == `"assistant"`:
			item["status"] = json.RawMessage(`"completed"`)
		}
		if text := item["content"]; len(text) > 0 && text[0] == '"' {
			form := `[{"type":"input_text","text":%s}]`
			if string(item["role"]) == `"assistant"` {
				form = `[{"type":"output_text","text":%s,"annotations":[]}]`
			}
			item["content"] = fmt.Appendf(nil, form, text)
		}
	}
	switch order := query("order"); order {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
		slices.Reverse(ids)
	default:
		return nil, apierr.Invalid("order", "The order must be asc or desc.")
	}
	from := 0
	if after := query("after"); after != "" {
		if from = slices.Index(ids, after) + 1; from == 0 {
			return nil, apierr.Invalid("after", "The input has no item with the id '%.100s'.", after)
		}
	}
	to := min(from+limit, len(items))
	page := struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
		First  *string           `json:"first_id"`
		Last   *string           `json:"last_id"`
		More   bool              `json:"has_more"`
	}{Object: "list", Data: []json.RawMessage{}, More: to < len(items)}
	for _, item := range items[from:to] {
		page.Data = append(page.Data, appendFields(nil, item))
	}
	if from < to {
		page.First, page.Last = &ids[from], &ids[to-1]
	}
	return json.Marshal(page)
}
