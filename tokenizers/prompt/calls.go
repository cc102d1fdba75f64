// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// This file determines the ids and the arguments with which past calls are printed: ids in the form that the template
// requires, and arguments as the model wrote them, which a Memo remembers.

// shortLen is the number of letters and digits in an id that the templates of Mistral accept.
const shortLen = 9

// isShort reports whether those templates accept an id.
func isShort(id string) bool {
	if len(id) != shortLen {
		return false
	}
	for i := range shortLen {
		if c := id[i]; !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			return false
		}
	}
	return true
}

// shortID returns the n-th id of that form for an id.
func shortID(id string, n int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	sum := h.Sum64()
	sum ^= sum >> 29 // the low bits of FNV depend on few bits of the input
	var out [shortLen]byte
	for i := range out {
		out[i], sum = digits[sum%uint64(len(digits))], sum/uint64(len(digits))
	}
	return string(out[:])
}

// idForms maps the ids of a conversation to those that are printed: the one that the model wrote, if it is known and
// new, or a short one if the template requires that. Short ids are not changed. An id only depends on those that appear
// before it for the first time, so it is the same in the next request. No two ids are mapped to the same one.
type idForms struct {
	short bool
	ids   map[string]string
	used  map[string]bool
}

func (s *idForms) of(id, own string) string {
	out, ok := s.ids[id]
	if ok {
		return out
	}
	if s.ids == nil {
		s.ids, s.used = map[string]string{}, map[string]bool{}
	}
	switch out = id; {
	case own != "" && !s.used[own] && (!s.short || isShort(own)):
		out = own
	case s.short && !isShort(id):
		out = shortID(id, 0)
	}
	for n := 1; s.used[out]; n++ { // another call was printed with it
		if out = shortID(id, n); !s.short {
			out = fmt.Sprint(id, "_", n)
		}
	}
	s.ids[id], s.used[out] = out, true
	return out
}

// callForm returns how the calls of out are printed, as chat.RenderOptions.Call describes, or nil if they are printed as they
// are. If out.repair is true, arguments that are not an object are printed as {}. out.recalled is set if past has a call.
func (m *Model) callForm(past *spellings, out *Prompt) func(id, args string) (newID, newArgs string, own bool) {
	short := m.caps.Has("short_ids")
	if !short && past == nil && !out.repair {
		return nil
	}
	ids := idForms{short: short}
	next := 0 // index in past.list of the call that is expected
	return func(id, args string) (newID, newArgs string, own bool) {
		written := ""
		if args != "" && past != nil {
			if s := past.find(id, &next); s != nil {
				if out.recalled = true; s.means(args) {
					args, own, written = s.args, true, s.own
				}
			}
		}
		if out.repair && broken(args) {
			args, own = "{}", false
		}
		if id != "" && (short || past.renamed()) {
			id = ids.of(id, written)
		}
		return id, args, own
	}
}

// broken reports whether the arguments of a call are not an object. Empty ones count as one without fields.
func broken(args string) bool {
	if strings.TrimSpace(args) == "" {
		return false
	}
	v, err := jsonval.Parse([]byte(args), "")
	return err != nil || v.Kind != jsonval.Object
}

// brokenCalls returns a loss for each past call whose arguments are not an object.
func brokenCalls(req *block.Request) (losses []block.Loss) {
	for _, turn := range req.Turns() {
		for i := range turn.Blocks {
			if b := &turn.Blocks[i]; b.Kind == block.ToolCall && !b.Custom && broken(b.Args) {
				losses = append(losses, block.Loss{Path: b.At.Path(), Why: "the arguments of the call are not a JSON object, which the template requires: it gets {}"})
			}
		}
	}
	return losses
}

// A spelling has the arguments of a call as the model wrote them. Clients that parse them return others, such as 3 for
// 3.0. It is safe for concurrent use.
type spelling struct {
	id, args string
	own      string                 // the id that the model wrote after the arguments; "" if it wrote none there
	same     atomic.Pointer[string] // what a client last returned with the same meaning
}

// means reports whether the arguments that a client returned have the meaning of those that the model wrote.
func (s *spelling) means(args string) bool {
	if args == s.args {
		return true
	}
	if same := s.same.Load(); same != nil && *same == args {
		return true
	}
	var own, got any
	if json.Unmarshal([]byte(s.args), &own) != nil || json.Unmarshal([]byte(args), &got) != nil || !reflect.DeepEqual(own, got) {
		return false
	}
	args = string([]byte(args)) // a view of the request
	s.same.Store(&args)
	return true
}

// spellings holds the spellings of the calls of a conversation, in the order of the calls. It is immutable.
type spellings struct {
	list []*spelling
	size int  // bytes
	own  bool // one of them has an own id

	once sync.Once
	byID map[string]*spelling
}

// find returns the last spelling of the call with an id, or nil. next is the index after the one found before.
func (s *spellings) find(id string, next *int) *spelling {
	if i := *next; i < len(s.list) && s.list[i].id == id {
		*next = i + 1
		return s.list[i]
	}
	s.once.Do(func() {
		s.byID = make(map[string]*spelling, len(s.list))
		for _, c := range s.list {
			s.byID[c.id] = c
		}
	})
	return s.byID[id]
}

// renamed reports whether a call has another id than the model wrote.
func (s *spellings) renamed() bool { return s != nil && s.own }

// with returns the spellings with more calls; s may be nil.
func (s *spellings) with(more []*spelling) *spellings {
	out := &spellings{}
	if s != nil {
		out.list, out.size, out.own = s.list, s.size, s.own
	}
	out.list = append(out.list[:len(out.list):len(out.list)], more...)
	for _, c := range more {
		out.size += int(unsafe.Sizeof(*c)) + 8 + len(c.id) + len(c.own) + 2*len(c.args) // a client may return other ones
		out.own = out.own || c.own != ""
	}
	return out
}

// bytes returns about how much memory the spellings take.
func (s *spellings) bytes() int {
	if s == nil {
		return 0
	}
	return s.size
}

// past returns the spellings of the calls that the conversation had before the turn's request.
func (t *Turn) past() *spellings {
	if t == nil || t.before == nil {
		return nil
	}
	t.memo.mu.Lock()
	defer t.memo.mu.Unlock()
	return t.before.spelled
}

// remember adds the calls and the ids of a response to the entry of its prompt.
func (t *Turn) remember(calls []*spelling, ids []uint32) {
	m, e := t.memo, t.next
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.rest != nil { // trimmed meanwhile: it has no tokens for the ids
		if ids = nil; len(calls) == 0 {
			return
		}
		if e = e.rest; e.node == nil {
			m.add(e)
		}
	}
	was := e.spelled.bytes()
	if len(calls) > 0 {
		e.spelled = e.spelled.with(calls)
	}
	if len(ids) > 0 {
		e.sampled = append(e.sampled, ids)
	}
	if e.node != nil {
		m.grow(e, e.spelled.bytes()-was+4*cap(ids)+24)
	}
}

// A recorder collects the calls of one response for a Memo.
type recorder struct {
	calls []*spelling
	open  map[int32]*written // by the number of the call
}

type written struct {
	id   string
	args []byte
}

// add adds an event whose call has its id.
func (r *recorder) add(ev *event.Event) {
	switch ev.Kind {
	case event.ToolStart:
		if r.open == nil {
			r.open = map[int32]*written{}
		}
		r.open[ev.Call] = &written{id: string(ev.ID)}
	case event.ToolArgs:
		if c := r.open[ev.Call]; c != nil {
			c.args = append(c.args, ev.Data...)
		}
	case event.ToolAbort:
		delete(r.open, ev.Call)
	case event.ToolEnd:
		if c := r.open[ev.Call]; c != nil && len(c.args) > 0 {
			r.calls = append(r.calls, &spelling{id: c.id, args: string(c.args), own: string(ev.ID)})
		}
		delete(r.open, ev.Call)
	}
}
