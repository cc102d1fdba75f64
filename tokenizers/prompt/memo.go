// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template"
)

// Memo remembers the last requests of conversations and their prompts, so that the next request of a conversation costs
// what is new in it: what it shares with the previous request at the beginning and the end is neither scanned, rendered
// nor encoded again.
//
//	turn := memo.Turn(tenant, salt, session)
//	req, err := turn.Decode(wire.Messages, body, nil)
//	...
//	p, err := turn.Render(model, req, time.Now())
//
// A prompt is the same with and without a Memo, byte for byte and id for id, except where a [Decoder] of the conversation
// decoded a response and the prompt would differ from the tokens that the engine's prefix cache has:
//
//   - A Memo keeps the arguments of calls as the model wrote them, and they are printed so unless the client has changed their
//     meaning. Clients that parse arguments return 3 for 3.0, or {"a":1} for {"a": 1}.
//   - If the Decoder was given token ids ([Decoder.AppendTokens]), later prompts have these ids for the response: now and then,
//     a model samples a text as other tokens than it is encoded to. They are used as far as they have the bytes that the template
//     prints after the response's prompt and the added tokens to which it is encoded, up to a position where an id of the
//     encoded text ends as well. Where the client has changed the response, or the template prints less of it, the text
//     is encoded; wrong ids never change what the model reads. Text, segments and spans are not affected. Tokenizers that
//     add a space after a marker (Llama 2), and markers that strip white space, prevent the use of ids.
//
// The requests of a conversation also share the memory of their bodies and blocks; see [wire.API.DecodeNext].
//
// Entries are found by tenant, salt and session, and within these by the longest beginning that the bodies share;
// everything that is taken from one is compared byte by byte first. A turn never reads the entry of another tenant or
// salt. The memo counts the memory of its entries and removes those that were not used for longest.
//
// A Memo is safe for concurrent use by multiple goroutines. The branches of a conversation may run in parallel.
type Memo struct {
	limit int
	seed  maphash.Seed

	mu     sync.Mutex
	bytes  int
	age    int       // number of calls to Trim
	recent list.List // of *entry, most recent first
	fronts map[front]*entry
	last   map[owner]*entry // the most recent one
}

// owner determines which entries a turn may read. Those of another session are only read for a common beginning.
type owner struct{ tenant, salt, session string }

// front identifies the beginning of a body.
type front struct {
	tenant, salt string
	hash         uint64
}

func (o owner) front(hash uint64) front { return front{o.tenant, o.salt, hash} }

// entry is a request and what remains of rendering it. After it was added, only node, bytes, age, rest, own, tokens,
// spelled and sampled change.
type entry struct {
	owner  owner
	fronts []uint64 // fingerprints of the beginnings of the body
	node   *list.Element
	bytes  int
	age    int    // Memo.age at its last use
	rest   *entry // what Trim left of it, with owner, fronts and spelled; nil before

	req   *block.Request // nil if the turn did not decode it
	salts bool           // its body names a cache salt

	printer         *printer        // nil until the prompt is rendered
	messages, tools []*jsonval.Part // as walked
	walked          *chat.Walked    // of messages; nil if they cannot be taken over without being walked
	fitted          []*jsonval.Part // messages as Fit changed them, if it did
	printed         bool            // Fit found nothing to change
	keep            any             // of the template
	kept            int             // bytes that it takes

	own     any        // of the caller; guarded by Memo.mu
	ownSize int        // bytes; guarded by Memo.mu
	tokens  *tokens    // nil until they are computed; guarded by Memo.mu
	spelled *spellings // of the calls in the conversation and in the responses to the prompt; guarded by Memo.mu
	sampled [][]uint32 // ids of the responses to the prompt; guarded by Memo.mu
}

// defaultMemo is the limit of a Memo in bytes if none is given.
const defaultMemo = 256 << 20

// NewMemo returns a Memo that takes at most about limit bytes; 0 means 256 MiB. A conversation of 100,000 tokens takes
// about 5 MB.
func NewMemo(limit int) *Memo {
	if limit <= 0 {
		limit = defaultMemo
	}
	return &Memo{limit: limit, seed: maphash.MakeSeed(), fronts: map[front]*entry{}, last: map[owner]*entry{}}
}

// Len returns the number of conversations and the memory that they take in bytes.
func (m *Memo) Len() (conversations, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent.Len(), m.bytes
}

// Turn returns the state of one request. Requests with different tenants or salts share nothing. salt and session may be
// empty if they are not known before the request is decoded; see [Turn.Bind].
func (m *Memo) Turn(tenant, salt, session string) *Turn {
	return &Turn{memo: m, owner: owner{tenant, salt, session}}
}

// Turn is one request with a Memo. It is not safe for concurrent use. A nil Turn works without a memo.
type Turn struct {
	memo    *Memo
	owner   owner
	before  *entry // may be nil
	next    *entry // of the prompt; nil in what the caller has
	decoded *block.Request
	fronts  []uint64 // of its body
	salts   bool     // its body names a cache salt
}

// Decode decodes a request, as api.Decode does. The request does not refer to body, which the caller may use again; see
// [wire.API.DecodeNext]. The request must not be edited after [Turn.Render]. If a body names a cache salt that Turn was not called
// with, no entry is used for decoding, unless the name is spelled with escapes: then an entry without a salt may be.
func (t *Turn) Decode(api *wire.API, body []byte, lim *block.Limits) (*block.Request, error) {
	if t == nil {
		return api.DecodeNext(nil, body, lim)
	}
	t.fronts = t.memo.fingerprints(body)
	t.find()
	if t.owner.salt == "" {
		part := body
		if t.before != nil && t.before.req != nil && !t.before.salts {
			front, end := t.before.req.Common(body)
			margin := len(saltName) - 1
			part = body[max(front-margin, 0):min(len(body)-end+margin, len(body))]
		}
		if t.salts = hasSalt(part); t.salts {
			t.before = nil
		}
	}
	var last *block.Request
	if t.before != nil {
		last = t.before.req
	}
	req, err := api.DecodeNext(last, body, lim)
	t.decoded = req
	return req, err
}

// saltName is in all bodies with a salt, of any API, unless they spell it with escapes.
const saltName = "cache_salt"

// hasSalt reports whether b contains saltName. It searches for the end of it, since an underscore is rarer than a c.
func hasSalt(b []byte) bool {
	const begin, end = "cache", "_salt"
	for {
		i := bytes.Index(b, []byte(end))
		if i < 0 || bytes.HasSuffix(b[:i], []byte(begin)) {
			return i >= 0
		}
		b = b[i+len(end):]
	}
}

// Bind sets the salt and the session of the request if they are only known from its body. A conversation is then also
// found if its requests begin with something volatile.
func (t *Turn) Bind(salt, session string) {
	if t == nil {
		return
	}
	if t.owner.salt != salt {
		t.before = nil
	}
	t.owner.salt, t.owner.session = salt, session
}

// find looks for the entry that has most in common with the turn.
func (t *Turn) find() {
	if t.before != nil {
		return
	}
	m := t.memo
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(t.fronts) - 1; i >= 0 && t.before == nil; i-- {
		t.before = m.fronts[t.owner.front(t.fronts[i])]
	}
	if t.before == nil && t.owner.session != "" {
		t.before = m.last[t.owner]
	}
	if t.before != nil && t.before.node != nil {
		m.recent.MoveToFront(t.before.node)
		t.before.age = m.age
	}
}

const (
	firstFront = 64  // bytes
	window     = 256 // bytes of which a fingerprint is computed
)

// nextFront returns the length of the next longer beginning: twice as long if it is short, otherwise a quarter longer.
func nextFront(end int) int {
	if end < window {
		return 2 * end
	}
	return end + end/4
}

// fingerprints returns fingerprints of beginnings of a body, shortest first. They only serve to find a candidate; each
// covers a little of the body.
func (m *Memo) fingerprints(body []byte) []uint64 {
	n := 0
	for end := firstFront; end <= len(body); end = nextFront(end) {
		n++
	}
	if n == 0 {
		return nil
	}
	out := make([]uint64, 0, n)
	var h maphash.Hash
	h.SetSeed(m.seed)
	for end := firstFront; end <= len(body); end = nextFront(end) {
		h.Write(body[max(end-window, 0):end])
		out = append(out, h.Sum64())
	}
	return out
}

// store adds the turn's entry, in place of the one that it continues. recalled specifies that the request has calls from it.
func (t *Turn) store(recalled bool) {
	m, e := t.memo, t.next
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.continues(t.before) && (recalled || !t.before.trimmed()):
		m.remove(t.before)
	case !recalled: // the conversations only begin alike
		e.spelled = nil
	}
	e.bytes = e.memory()
	m.add(e)
}

// continues reports whether e is a later request of the same conversation as o, and not of one that only begins alike.
func (e *entry) continues(o *entry) bool {
	if o == nil {
		return false
	}
	n := same(o.messages, e.messages)
	return n == len(o.messages) || e.owner == o.owner && e.owner.session != "" && n > len(o.messages)/2
}

// same returns the number of parts at the beginning of both lists that are the same.
func same(a, b []*jsonval.Part) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// add adds an entry.
func (m *Memo) add(e *entry) {
	if e.bytes > m.limit {
		return
	}
	e.node, e.age = m.recent.PushFront(e), m.age
	m.bytes += e.bytes
	if e.owner.session != "" {
		m.last[e.owner] = e
	}
	for _, h := range e.fronts {
		m.fronts[e.owner.front(h)] = e
	}
	m.evict()
}

// grow adds n bytes to an entry.
func (m *Memo) grow(e *entry, n int) {
	e.bytes += n
	m.bytes += n
	m.evict()
}

// evict removes the entries that were not used for longest until the others are within the limit.
func (m *Memo) evict() {
	for m.bytes > m.limit {
		m.remove(m.recent.Back().Value.(*entry))
	}
}

// remove removes an entry or its rest, if it is still there.
func (m *Memo) remove(e *entry) {
	if e.rest != nil {
		e = e.rest
	}
	if e.node == nil {
		return
	}
	m.recent.Remove(e.node)
	e.node = nil
	m.bytes -= e.bytes
	if m.last[e.owner] == e {
		delete(m.last, e.owner)
	}
	for _, h := range e.fronts {
		if k := e.owner.front(h); m.fronts[k] == e {
			delete(m.fronts, k)
		}
	}
}

// Trim removes the conversations that were not used since Trim was last called, except the arguments of their calls as the
// model wrote them, which cannot be computed again. The next request of such a conversation costs as much as without a
// Memo, and has the same prompt, encoded from text. A program that calls Trim once a minute keeps the conversations used in the last minute,
// and at most in the last two.
func (m *Memo) Trim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.age++
	done := 0
	for n := m.recent.Back(); n != nil && n.Value.(*entry).age < m.age-1; {
		e := n.Value.(*entry)
		n = n.Prev()
		if e.node != nil && !e.trimmed() {
			m.trim(e)
		}
		if done++; done%trimAtOnce == 0 { // requests may continue; if n is removed meanwhile, the rest is left to the next call
			m.mu.Unlock()
			m.mu.Lock()
		}
	}
}

// trimAtOnce is the number of entries that Trim looks at while requests wait: about a millisecond.
const trimAtOnce = 250

// trim puts the rest of an entry in its place, if it has calls. Otherwise the rest is added when it has some.
func (m *Memo) trim(e *entry) {
	// The strings may be parts of the body.
	o := owner{strings.Clone(e.owner.tenant), strings.Clone(e.owner.salt), strings.Clone(e.owner.session)}
	rest := &entry{owner: o, fronts: e.fronts, spelled: e.spelled, age: e.age}
	rest.bytes = rest.memory()
	if e.spelled == nil {
		m.remove(e)
		e.rest = rest
		return
	}
	e.rest, rest.node, e.node = rest, e.node, nil
	rest.node.Value = rest
	m.bytes += rest.bytes - e.bytes
	if m.last[e.owner] == e {
		delete(m.last, e.owner)
		m.last[o] = rest
	}
	for _, h := range e.fronts {
		if k := e.owner.front(h); m.fronts[k] == e {
			delete(m.fronts, k)
			m.fronts[o.front(h)] = rest
		}
	}
}

// trimmed reports whether e is the rest of an entry.
func (e *entry) trimmed() bool { return e.printer == nil }

// memory returns about how much memory the entry takes in bytes. Parts that it shares with other entries count for each.
func (e *entry) memory() int {
	n := 1<<10 + 40*len(e.messages) + 80*len(e.fronts) + e.kept + e.spelled.bytes()
	if e.req != nil {
		n += e.req.Memory()
	}
	for _, list := range [][]*jsonval.Part{e.messages, e.tools, e.fitted} {
		for _, p := range list {
			n += p.Bytes()
		}
	}
	return n
}

// Render renders a request, as model.Render does.
func (t *Turn) Render(model *Model, req *block.Request, now time.Time) (*Prompt, error) {
	if t == nil {
		return model.Render(req, now)
	}
	own := *t // of the prompt, so that its ids belong to its entry, also if the turn renders another one meanwhile
	own.next = &entry{fronts: t.fronts}
	p, err := model.render(req, now, &own)
	if err != nil || own.next.printer == nil {
		return p, err
	}
	if t.decoded == req {
		own.next.req, own.next.salts = req, t.salts
	}
	own.store(p.recalled)
	p.turn = &own
	return p, nil
}

// encode returns the tokens of a prompt of the turn and adds them to the entry.
func (t *Turn) encode(p *Prompt) *tokens {
	m := t.memo
	var before *tokens
	var sampled [][]uint32
	if t.before != nil && t.before.printer == p.model.printer {
		m.mu.Lock()
		before, sampled = t.before.tokens, t.before.sampled
		m.mu.Unlock()
	}
	tokens := before.next(p, sampled)
	m.mu.Lock()
	defer m.mu.Unlock()
	t.next.tokens = tokens
	if t.next.node != nil {
		m.grow(t.next, tokens.bytes())
	}
	return tokens
}

// Keep keeps a value in the Memo that the prompt was rendered with, which takes about size bytes, in place of the value
// kept before. [Prompt.Kept] of the conversation's next prompt returns it, also to other goroutines. Without a Memo, Keep
// does nothing.
func (p *Prompt) Keep(value any, size int) {
	if p.turn == nil {
		return
	}
	m, e := p.turn.memo, p.turn.next
	m.mu.Lock()
	defer m.mu.Unlock()
	more := size - e.ownSize
	e.own, e.ownSize = value, size
	if e.node != nil {
		m.grow(e, more)
	}
}

// Kept returns the value that [Prompt.Keep] kept with the previous prompt of the conversation, and the number of token ids
// with which both prompts begin. It returns nil and 0 if there is none. Like [Prompt.IDs], it encodes the prompt.
func (p *Prompt) Kept() (value any, ids int) {
	p.encode()
	if p.turn == nil || p.tokens == nil || p.tokens.common == 0 {
		return nil, 0
	}
	m := p.turn.memo
	m.mu.Lock()
	defer m.mu.Unlock()
	if value = p.turn.before.own; value == nil {
		return nil, 0
	}
	return value, p.tokens.common
}

// partTemplate is implemented by the templates of package template that can use an earlier rendering: all but ChatML.
type partTemplate interface {
	RenderParts(req template.Request, messages, tools []*jsonval.Part, before any) (p *template.Prompt, keep any, size int, err error)
}

// renderParts is renderValues with a memo.
func (m *Model) renderParts(t valueTemplate, turn *Turn, req *block.Request, out *Prompt) (done bool, err error) {
	turn.find()
	turn.next.owner = turn.owner
	next, before := turn.next, turn.before
	if before == nil || before.printer != m.printer {
		before = &entry{}
	}
	rec := jsonval.NewRecorder(before.messages, before.tools)
	next.spelled = turn.past()
	next.walked = m.walkNext(req, out, rec.Add, next.spelled, before.walked)
	messages, tools, ok := rec.Parts()
	if !ok {
		return false, nil
	}
	next.messages, next.tools, next.fitted = messages, tools, nil
	printed := 0
	if before.printed {
		printed = same(before.messages, messages)
	}
	fitted, notes := t.FitParts(&m.caps, messages, printed)
	next.printed = fitted == nil
	if out.changed(notes) {
		out.values = fitted
		next.fitted = jsonval.Keep(fitted, before.fitted)
		messages = next.fitted
	}
	if parts, ok := t.(partTemplate); ok {
		out.Prompt, next.keep, next.kept, err = parts.RenderParts(m.request(req, out), messages, tools, before.keep)
	} else {
		out.Prompt, err = t.RenderValues(m.request(req, out), jsonval.Values(messages), jsonval.Values(tools))
	}
	if err != nil {
		return true, out.refused(req, err)
	}
	next.printer = m.printer
	return true, nil
}
