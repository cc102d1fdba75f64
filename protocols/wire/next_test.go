// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
)

// nextSeeds are bodies with all kinds of turns, blocks and tools.
var nextSeeds = []struct {
	api  *wire.API
	body string
}{
	{wire.Messages, `{"model":"m","max_tokens":10,"system":[{"type":"text","text":"x-header: a=1;"},{"type":"text","text":"be\nbrief","cache_control":{"type":"ephemeral","ttl":"1h"}}],` +
		`"messages":[{"role":"user","content":"hello \"you\""},{"role":"assistant","content":[{"type":"thinking","thinking":"hm\n","signature":"c2ln"},{"type":"redacted_thinking","data":"eA=="},{"type":"text","text":"x"},` +
		`{"type":"tool_use","id":"t1","name":"f","input":{"a":"b\n","n":[1,2]}},{"type":"tool_use","id":"t2","name":"c","input":{"input":"free"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},` +
		`{"type":"tool_result","tool_use_id":"t2","content":"r\t2","is_error":true},{"type":"text","text":"<system-reminder>x</system-reminder>","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"user","content":[{"type":"document","title":"d","source":{"type":"content","content":[{"type":"text","text":"page"}]}},{"type":"mid_conv_system","content":[{"type":"text","text":"now"}]},{"type":"other","x":1}]}],` +
		`"tools":[{"name":"f","description":"d\n1","input_schema":{"type":"object","properties":{"a":{"type":"string"}}},"cache_control":{"type":"ephemeral"}},` +
		`{"name":"c","input_schema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"x-custom-format":{"type":"grammar"}}},{"type":"web_search_20250305","name":"w","max_uses":2}],"stream":true,"metadata":{"user_id":"u"}}`},
	{wire.Chat, `{"model":"m","messages":[{"role":"system","content":"be\nbrief"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}}],"name":"bob"},` +
		`{"role":"assistant","content":"","reasoning_content":"hm\n","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"custom","custom":{"name":"c","input":"free"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"r1"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"r\"2"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}],"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"s"},{"type":"reasoning.text","index":0,"text":"b"},{"type":"reasoning.encrypted","index":1,"data":"ZQ=="}]},` +
		`{"role":"assistant","content":null,"reasoning_content":["a","b"],"tool_calls":[{"id":"c3","type":"function","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"g","arguments":"{}"}},{"role":"developer","content":"d","refusal":null}],` +
		`"tools":[{"type":"function","function":{"name":"f","description":"d\n1","parameters":{"type":"object"},"strict":true},"cache_control":{"type":"ephemeral"}},{"type":"custom","custom":{"name":"c","format":{"type":"text"}}},{"type":"hosted"}],"stop":["a","b"],"n":2,"nvext":{"priority":1}}`},
	{wire.Chat, `{"model":"m","messages":[{"role":"user","content":"hi"}],"functions":[{"name":"f","description":"d","parameters":{}},{"name":"g"}]}`},
	{wire.Responses, `{"model":"m","instructions":"be\nbrief","input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"s\n"},{"type":"summary_text","text":"t"}],"encrypted_content":"ZQ=="},` +
		`{"type":"message","role":"assistant","id":"m1","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]},{"type":"function_call","id":"f1","call_id":"c1","name":"f","namespace":"s","arguments":"{\"a\":1}"},` +
		`{"type":"custom_tool_call","call_id":"c2","name":"c","input":"free"},{"type":"function_call_output","call_id":"c1","output":"r\n1"},{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"r2"},{"type":"input_image","image_url":"https://x/y","detail":"low"}]},` +
		`{"type":"message","role":"assistant","content":[]},{"type":"compaction","encrypted_content":"eA=="},{"type":"web_search_call","id":"w1","action":{}},{"id":"ref"},{"role":"developer","content":[{"type":"input_text","text":"d"},{"type":"input_file","file_id":"x"}]}],` +
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"namespace","name":"s","tools":[{"type":"function","name":"f","parameters":{}},{"type":"custom","name":"h","format":{"type":"text"}}]},{"type":"web_search"}],"reasoning":{"effort":"low"}}`},
	{wire.Responses, `{"model":"m","input":"hi\nthere","tools":[{"type":"custom","name":"c"}]}`},
	{wire.Completions, `{"model":"m","prompt":["a\n","b",[1,2,3]],"max_tokens":5}`},
}

// tree is a JSON value that tests change.
type tree struct {
	key  string // raw, of a field
	text string // of a string, number or literal; "[" or "{" for others
	kids []*tree
}

// parseTree parses valid JSON.
func parseTree(s string) *tree {
	t, _ := parseTreeAt(s, 0)
	return t
}

func parseTreeAt(s string, i int) (*tree, int) {
	end := func(i int) int { // of a string or another scalar
		if s[i] == '"' {
			for i++; s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			return i + 1
		}
		for i < len(s) && !strings.ContainsRune(",]}", rune(s[i])) {
			i++
		}
		return i
	}
	if s[i] != '[' && s[i] != '{' {
		return &tree{text: s[i:end(i)]}, end(i)
	}
	t := &tree{text: s[i : i+1]}
	for i++; s[i] != ']' && s[i] != '}'; {
		key := ""
		if t.text == "{" {
			key, i = s[i:end(i)], end(i)+1
		}
		var kid *tree
		kid, i = parseTreeAt(s, i)
		kid.key = key
		t.kids = append(t.kids, kid)
		if s[i] == ',' {
			i++
		}
	}
	return t, i + 1
}

func (t *tree) clone() *tree {
	out := *t
	out.kids = nil
	for _, k := range t.kids {
		out.kids = append(out.kids, k.clone())
	}
	return &out
}

func (t *tree) all(list []*tree) []*tree {
	list = append(list, t)
	for _, k := range t.kids {
		list = k.all(list)
	}
	return list
}

// append appends the value as JSON, seldom with white space.
func (t *tree) append(dst []byte, r *rand.Rand) []byte {
	if t.text != "[" && t.text != "{" {
		return append(dst, t.text...)
	}
	dst = append(dst, t.text...)
	for i, k := range t.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		if r.IntN(200) == 0 {
			dst = append(dst, " \n"...)
		}
		if t.text == "{" {
			dst = append(append(dst, k.key...), ':')
		}
		dst = k.append(dst, r)
	}
	return append(dst, t.text[0]+2)
}

// change makes a random change.
func (t *tree) change(r *rand.Rand) {
	list := t.all(nil)
	any := func() *tree { return list[r.IntN(len(list))] }
	into := any()
	for try := 0; len(into.kids) == 0 && try < 20; try++ {
		into = any()
	}
	n := len(into.kids)
	if n == 0 {
		return
	}
	i := r.IntN(n)
	k := into.kids[i]
	put := func(x *tree, key string) *tree {
		x = x.clone()
		x.key = key
		return x
	}
	scalars := []string{`"new"`, `"x\ny"`, `""`, `null`, `1`, `12`, `true`, `"user"`, `"assistant"`, `"text"`, `"tool"`, `[]`, `{}`}
	switch r.IntN(9) {
	case 0:
		into.kids = append(into.kids[:i:i], into.kids[i+1:]...)
	case 1:
		j := r.IntN(n)
		into.kids[i], into.kids[j] = into.kids[j], into.kids[i]
	case 2:
		into.kids[i] = put(any(), k.key)
	case 3: // another text
		for _, x := range list {
			if len(x.kids) == 0 && r.IntN(len(list)) < 3 {
				x.text = scalars[r.IntN(len(scalars))]
				if x.text == "[]" || x.text == "{}" {
					x.text = x.text[:1]
				}
			}
		}
	case 4: // repeat an element, such as a message
		if into.text == "[" {
			into.kids = append(into.kids[:i+1:i+1], append([]*tree{put(k, "")}, into.kids[i+1:]...)...)
		}
	case 5: // add a field or element
		key := ""
		if into.text == "{" {
			key = []string{`"cache_control"`, `"name"`, `"content"`, `"id"`, `"x"`, `"tool_choice"`, `"type"`}[r.IntN(7)]
		}
		into.kids = append(into.kids[:i:i], append([]*tree{put(any(), key)}, into.kids[i:]...)...)
	case 6: // the end is cut
		into.kids = into.kids[:i]
	case 7: // longer
		if len(k.text) > 1 && k.text[0] == '"' {
			k.text = k.text[:len(k.text)-1] + `more\n"`
		}
	case 8:
		k.key = into.kids[r.IntN(n)].key
	}
}

// describe returns everything that a request shows.
func describe(r *block.Request) string {
	var b strings.Builder
	at := func(a block.Ref) {
		off, end := a.Span()
		fmt.Fprintf(&b, " at %s %d %d\n", a.Path(), off, end)
	}
	var blocks func(list []block.Block, depth int)
	blocks = func(list []block.Block, depth int) {
		for i := range list {
			x := list[i]
			fmt.Fprintf(&b, "%*s%v %q %q %q %q %q %t %t %q %q %q %q %t %t %t %+v %+v %s %d", depth, "", x.Kind, x.Type, x.ID, x.Text, x.Signature, x.Encrypted,
				x.Summary, x.Redacted, x.CallID, x.Name, x.Namespace, x.Args, x.Custom, x.Server, x.IsError, x.Media, x.Cache, x.JSON, x.Form)
			at(x.At)
			blocks(x.Content, depth+1)
		}
	}
	for _, t := range r.Turns() {
		fmt.Fprintf(&b, "%v %v %q %q %d", t.Role, t.Kind, t.ID, t.Name, t.Form)
		at(t.At)
		blocks(t.Blocks, 1)
	}
	for _, t := range r.Tools() {
		strict := "-"
		if t.Strict != nil {
			strict = fmt.Sprint(*t.Strict)
		}
		fmt.Fprintf(&b, "%d %q %q %q %s %s %s %t %q %+v %q", t.Kind, t.Name, t.Namespace, t.Description, t.Schema, t.Format, strict, t.Deferred, t.Type, t.Cache, t.ModelName)
		at(t.At)
	}
	return b.String()
}

// A nextPair has two histories of the same requests: one of decoded requests, and one of requests that took over parts of
// earlier ones.
type nextPair [2]preamble.History

// check compares what packages derive from two equal requests.
func (p *nextPair) check(t *testing.T, want, got *block.Request, o preamble.Prompt) {
	t.Helper()
	marks, faults := wire.Breakpoints(want)
	again, faultsAgain := wire.Breakpoints(got)
	if diff := cmp.Diff(marks, again) + cmp.Diff(faults, faultsAgain); diff != "" {
		t.Fatalf("breakpoints of %s: %s", want.Body(), diff)
	}
	opt := &preamble.CompareOptions{Prompt: o}
	a, b := p[0].Next(want, opt), p[1].Next(got, opt)
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("divergence of %s: got %+v, want %+v", want.Body(), b, a)
	}
}

// sameNext checks that DecodeNext returns what Decode returns. It returns the request, or nil if the body is invalid.
func sameNext(t *testing.T, api *wire.API, prev *block.Request, body []byte, lim *block.Limits, r *rand.Rand, pair *nextPair) *block.Request {
	t.Helper()
	want, wantErr := api.Decode(bytes.Clone(body), lim)
	got, err := api.DecodeNext(prev, bytes.Clone(body), lim)
	if diff := cmp.Diff(wantErr, err); diff != "" {
		t.Fatalf("%s\n%s\n%s", prev.Body(), body, diff)
	}
	if err != nil {
		return nil
	}
	if diff := cmp.Diff(strings.Split(describe(want), "\n"), strings.Split(describe(got), "\n")); diff != "" {
		t.Fatalf("%s\n%s\n%s", prev.Body(), body, diff)
	}
	if !got.Equal(want) {
		t.Fatalf("%s\n%s\nnot equal", prev.Body(), body)
	}
	layout := preamble.Prompt{SystemFirst: r.IntN(2) == 0, CallIDs: r.IntN(4) == 0}
	pair.check(t, want, got, layout)
	out, err := got.AppendBody(nil)
	if err != nil || !bytes.Equal(out, body) {
		t.Fatalf("the body %s became %s (%v)", body, out, err)
	}
	if r.IntN(3) > 0 {
		return got
	}
	edited, err := api.DecodeNext(prev, bytes.Clone(body), lim) // the other one is the next prev
	if err != nil {
		t.Fatal(err)
	}
	seed := r.Uint64()
	sameError(t, randomEdits(want, rand.New(rand.NewPCG(seed, 1))), randomEdits(edited, rand.New(rand.NewPCG(seed, 1))))
	pair.check(t, want, edited, layout)
	a, aErr := want.AppendBody(nil)
	b, bErr := edited.AppendBody(nil)
	if sameError(t, aErr, bErr); string(a) != string(b) {
		t.Fatalf("edits of %s\ngave %s\nwant %s", body, b, a)
	}
	if want.Commit() == nil && edited.Commit() == nil {
		if diff := cmp.Diff(describe(want), describe(edited)); diff != "" {
			t.Fatalf("after edits: %s", diff)
		}
	}
	return got
}

func sameError(t *testing.T, want, got error) {
	t.Helper()
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Fatalf("got error %v, want %v", got, want)
	}
}

// randomEdits makes some edits and returns their errors.
func randomEdits(q *block.Request, r *rand.Rand) error {
	var all []string
	for range 1 + r.IntN(4) {
		turns := q.Turns()
		if len(turns) == 0 {
			break
		}
		ti := r.IntN(len(turns))
		var err error
		switch k := r.IntN(6); {
		case k == 5:
			err = q.Delete(q.Turns()[ti].At)
		case k == 4:
			err = q.InsertTurn(ti, block.NewTurn(block.RoleUser, "new turn"))
		case len(turns[ti].Blocks) == 0:
		default:
			b := turns[ti].Blocks[r.IntN(len(turns[ti].Blocks))]
			if len(b.Content) > 0 && r.IntN(2) == 0 {
				b = b.Content[r.IntN(len(b.Content))]
			}
			switch k {
			case 0:
				err = q.SetText(b.At, "changed\n")
			case 1:
				err = q.Delete(b.At)
			case 2:
				err = q.Insert(b.At, block.Block{Kind: block.Text, Text: "new"})
			case 3:
				b.Cache = &block.Cache{Type: "ephemeral"}
				b.CallID += "x"
				err = q.Set(b.At, b)
			}
		}
		all = append(all, fmt.Sprint(err))
	}
	return fmt.Errorf("%s", strings.Join(all, "; "))
}

// nextChain decodes a conversation of random changes, each with the help of an earlier request.
func nextChain(t *testing.T, seed uint64, turns int) (valid int) {
	r := rand.New(rand.NewPCG(seed, 17))
	s := nextSeeds[seed%uint64(len(nextSeeds))]
	now := parseTree(s.body)
	var pair nextPair
	prev := sameNext(t, s.api, nil, []byte(s.body), nil, r, &pair)
	for range turns {
		next := now.clone()
		for range 1 + r.IntN(3) {
			next.change(r)
		}
		body := next.append(nil, r)
		var lim *block.Limits
		switch r.IntN(8) {
		case 0:
			lim = &block.Limits{Blocks: 1 + r.IntN(20), Tools: 1 + r.IntN(6)}
		case 1:
			lim = &block.Limits{Values: 1 + r.IntN(150), Depth: 2 + r.IntN(8), Body: 1 + r.IntN(2*len(body))}
		case 2:
			body[r.IntN(len(body))] = `{}[]",:\1x`[r.IntN(10)]
		}
		got := sameNext(t, s.api, prev, body, lim, r, &pair)
		if got == nil || len(body) > 1<<15 {
			continue
		}
		valid++
		if prev, now = got, next; r.IntN(4) == 0 {
			randomEdits(prev, r) // what it was decoded from counts
		}
	}
	return valid
}

func TestDecodeNext(t *testing.T) {
	chains, valid := 120, 0
	switch {
	case race.Enabled:
		chains = 30
	case testing.Short():
		chains = 10
	}
	for seed := range chains {
		valid += nextChain(t, uint64(seed), 50)
	}
	if valid < 10*chains {
		t.Errorf("only %d bodies of %d chains were valid", valid, chains)
	}
}

func ExampleAPI_DecodeNext() {
	first, err := wire.Messages.Decode([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi!"}]}`), nil)
	if err != nil {
		panic(err)
	}
	next, err := wire.Messages.DecodeNext(first, []byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi!"},{"role":"assistant","content":"Yes?"}]}`), nil)
	if err != nil {
		panic(err)
	}
	for _, t := range next.Turns() {
		fmt.Println(t.Role, t.Text(""))
	}
	// Output:
	// user Hi!
	// assistant Yes?
}

// BenchmarkDecodeNext decodes the next turn of a long conversation.
func BenchmarkDecodeNext(b *testing.B) {
	old, body := agentBody(280), agentBody(281)
	prev, err := wire.Messages.Decode(old, nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, prev := range map[string]*block.Request{"plain": nil, "next": prev} {
		b.Run("decode="+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := wire.Messages.DecodeNext(prev, body, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzDecodeNext(f *testing.F) {
	for i := range nextSeeds {
		f.Add(uint64(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64) { nextChain(t, seed, 8) })
}

// TestDecodeNextOther checks requests of which nothing can be taken over.
func TestDecodeNextOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	body := []byte(nextSeeds[0].body)
	chat, err := wire.Chat.Decode([]byte(nextSeeds[1].body), nil)
	if err != nil {
		t.Fatal(err)
	}
	sameNext(t, wire.Messages, chat, body, nil, r, new(nextPair))
	sameNext(t, wire.Messages, block.NewRequest(block.NewTurn(block.RoleUser, "hi")), body, nil, r, new(nextPair))
	detached, err := wire.Messages.Decode(bytes.Clone(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := detached.Detach(); err != nil {
		t.Fatal(err)
	}
	sameNext(t, wire.Messages, detached, body, nil, r, new(nextPair))
}

// TestDecodeNextReasoning checks reasoning that was found intact in an earlier request: it is not verified again, unless
// the turn or the signer is another one.
func TestDecodeNextReasoning(t *testing.T) {
	signer := reasoningKey.With("a")
	turn := func(text, token string) string {
		return fmt.Sprintf(`{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":%q,"signature":%q},{"type":"text","text":"b"}]},`, text, token)
	}
	body := func(turns ...string) []byte {
		return []byte(`{"model":"m","max_tokens":9,"messages":[` + strings.Join(turns, "") + `{"role":"user","content":"c"}]}`)
	}
	decode := func(prev *block.Request, body []byte) *block.Request {
		t.Helper()
		r, err := wire.Messages.DecodeNext(prev, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	check := func(r *block.Request, s *replay.Signer, drop []replay.Verdict, want ...string) {
		t.Helper()
		plain, err := wire.Messages.Decode(bytes.Clone(r.Body()), nil)
		if err != nil {
			t.Fatal(err)
		}
		var lists [2][]string
		for i, q := range []*block.Request{plain, r} {
			found, err := wire.CheckReasoning(q, s, drop...)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range found {
				lists[i] = append(lists[i], c.String())
			}
		}
		if !slices.Equal(lists[0], want) || !slices.Equal(lists[1], want) || string(plain.Body()) != string(r.Body()) {
			t.Errorf("got %q, without an earlier request %q, want %q", lists[1], lists[0], want)
		}
	}
	intact := turn("one", signedBy(signer, "one"))
	sealed := turn("shown", sealedBy(signer, "two"))
	foreign := turn("three", "c2ln")
	first := body(intact, sealed, foreign)
	prev := decode(nil, bytes.Clone(first))
	check(decode(prev, bytes.Clone(first)), signer, nil, "messages[3].content[0]: intact reasoning restored")
	for i, o := range codec.OriginsOf(decode(prev, bytes.Clone(first))) {
		by, _ := o.Intact.Load().(*replay.Signer)
		if known := by != nil; known != (i != 3 && i != 5) {
			t.Errorf("turn %d: known to be intact: %t", i, known)
		}
	}
	check(decode(prev, bytes.Clone(first)), signer, []replay.Verdict{replay.Foreign},
		"messages[3].content[0]: intact reasoning restored", "messages[5].content[0]: foreign reasoning dropped")
	forged := "messages[1].content[0]: forged reasoning dropped"
	check(decode(prev, body(intact)), reasoningKey.With("b"), nil, forged)
	check(decode(prev, body(intact)), reasoningOther, nil, "messages[1].content[0]: unverified reasoning kept")
	check(decode(prev, body(intact)), signer, nil)
	check(decode(prev, body(turn("0ne", signedBy(signer, "one")), intact)), signer, nil, forged)
	edited := decode(prev, body(intact))
	if err := edited.SetText(edited.Turns()[1].Blocks[0].At, "0ne"); err != nil {
		t.Fatal(err)
	}
	if found, err := wire.CheckReasoning(edited, signer); err != nil || len(found) != 1 || found[0].Verdict != replay.Forged {
		t.Errorf("edited reasoning: got %v, %v", found, err)
	}
}

// TestDecodeNextShared decodes next turns of one request in several goroutines, while another edits it.
func TestDecodeNextShared(t *testing.T) {
	for _, s := range nextSeeds {
		prev, err := s.api.Decode([]byte(s.body), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := describe(prev)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 20 {
					got, err := s.api.DecodeNext(prev, []byte(s.body), nil)
					if err != nil || describe(got) != want {
						t.Errorf("not equal (%v)", err)
					}
				}
			})
		}
		wg.Go(func() { randomEdits(prev, rand.New(rand.NewPCG(3, 4))); prev.Commit() })
		wg.Wait()
	}
}

// agentBody returns the request k of an agent's conversation, with a header that changes and a mark that moves.
func agentBody(k int) []byte {
	b := fmt.Appendf(nil, `{"model":"m","system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.%d;"},{"type":"text","text":"be\nbrief"}],"messages":[`, k)
	for i := range k {
		if i > 0 {
			b = append(b, ',')
		}
		text := strings.Repeat(fmt.Sprintf("%d\\n a line of code", i), 40)
		b = fmt.Appendf(b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"`, i, text)
		if i == k-1 {
			b = append(b, `,"cache_control":{"type":"ephemeral"}`...)
		}
		b = fmt.Appendf(b, `}]},{"role":"assistant","content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"t%d","name":"f","input":{"a":"%s"}}]}`, text[:40], i+1, text[:40])
	}
	return append(b, `],"tools":[{"name":"f","description":"d\n1","input_schema":{"type":"object"}}]}`...)
}

// TestDecodeNextMemory checks that a request refers neither to the body that it was decoded from nor to much memory of earlier ones.
func TestDecodeNextMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	const first, turns = 20, 60
	var bodies []weak.Pointer[byte]
	var req *block.Request
	for k := range turns {
		body := agentBody(first + k)
		bodies = append(bodies, weak.Make(&body[0]))
		next, err := wire.Messages.DecodeNext(req, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		req = next
	}
	runtime.GC()
	for i, b := range bodies {
		if b.Value() != nil {
			t.Errorf("the body of turn %d is still in memory", i)
		}
	}
	if !bytes.Equal(req.Body(), agentBody(first+turns-1)) {
		t.Error("the last body is another one")
	}

	// Conversations that share one long text with the one before: it is copied before much memory is kept for it.
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for k := range 200 {
		long := strings.Repeat(fmt.Sprintf("%d\\n", k%100), 1<<14)
		body := fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"be\nbrief"},{"role":"user","content":"%s"}]}`, long)
		next, err := wire.Messages.DecodeNext(req, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		req = next
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > 8*int64(len(req.Body())) {
		t.Errorf("a request with a body of %d bytes keeps %d", len(req.Body()), n)
	}
	runtime.KeepAlive(req)
}

// TestDecodeNextAllocs checks that the next turn of a long conversation is decoded without memory for each block.
func TestDecodeNextAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations differ with the race detector")
	}
	prev, err := wire.Messages.Decode(agentBody(300), nil)
	if err != nil {
		t.Fatal(err)
	}
	body := agentBody(301)
	n := testing.AllocsPerRun(10, func() {
		if _, err := wire.Messages.DecodeNext(prev, body, nil); err != nil {
			t.Error(err)
		}
	})
	if n > 60 {
		t.Errorf("%.0f allocations, want at most 60", n)
	}
}

// TestFailedEditOfSharedTurn checks that a failed edit of a request does not hide faults of a turn from requests that share it.
func TestFailedEditOfSharedTurn(t *testing.T) {
	for api, format := range map[*wire.API]string{
		wire.Messages:  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"%s","cache_control":5}]}]}`,
		wire.Chat:      `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"%s","cache_control":5}]}]}`,
		wire.Responses: `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"%s","prompt_cache_breakpoint":5}]}]}`,
	} {
		body := fmt.Sprintf(format, strings.Repeat("a", 300))
		first := nextOf(t, api, nil, body)
		edited := nextOf(t, api, first, body)
		if err := edited.Set(edited.Turns()[0].Blocks[0].At, block.Block{Kind: block.Unknown, JSON: []byte("{")}); err != nil {
			t.Fatal(err)
		}
		wire.Breakpoints(edited)
		for _, r := range []*block.Request{first, nextOf(t, api, first, body)} {
			if _, faults := wire.Breakpoints(r); len(faults) != 1 {
				t.Errorf("%v: got the faults %v, want one", api, faults)
			}
		}
	}
}
