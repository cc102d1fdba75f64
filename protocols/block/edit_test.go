// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/messages"
)

// The bodies below contain the same agent turn in each API, with unusual white space, escapes and spellings of numbers,
// and with unknown fields, so that encoding any of it again would change the body.
const (
	chatBody = ` { "model" : "m\u0031",
 "x_unknown" : {"b":1.50, "a":[ ]},"temperature":1.0e0,
 "messages":[
  {"role":"developer", "content":"Be \u0062rief.","x":null},
  {"content":[ {"type":"text","text":"List \"files\"","y":1E2} , {"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"hologram","z":0.10}, "bare" ],"role":"user" },
  {"role":"assistant","reasoning_content":"I should\nlist.","content":"Sure. \ud83d\ude00","tool_calls":[ {"id":"c1","type":"function","function":{"name":"ls", "arguments":"{ \"p\": 1.0 }"}},{"index":1,"id":"c2","type":"function","function":{"arguments":"{broken","name":"cat"}} ]},
  {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"no such"} ] , "k":1},
  {"role":"tool","tool_call_id":"c1","content":"a.txt"},
  {"role":"user","content":"<system-reminder>be quick</system-reminder>"}
 ],
 "tools":[{"type":"function","function":{"name":"ls","description":"List.","parameters":{"type":"object","properties":{"p":{"type":"number"}}}}},{"type":"function","function":{"name":"cat"}}],
 "max_tokens" : 1e3, "stream":true,"stop":"END"}
`
	responsesBody = "\t" + `{"instructions":"Be \u0062rief.","model":"m1" , "x_unknown":{"b":1.50},
 "input":[ {"role":"user","content":"List \"files\"","id":"u1"},
  {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I should\nlist."}],"content":null,"encrypted_content":"b3Bh"},
  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Sure. \ud83d\ude00","annotations":[ ],"logprobs":[]}],"status":"completed"},
  {"type":"function_call","call_id":"c1","name":"ls","arguments":"{ \"p\": 1.0 }","status":"completed"},
  {"type":"custom_tool_call","call_id":"c2","name":"patch","input":"*** Begin\n"},
  {"type":"web_search_call","id":"ws","status":"completed"},
  {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"done"},{"type":"input_image","image_url":"https://x/y.png","detail":null}]},
  {"type":"function_call_output","call_id":"c1","output":"a.txt","zz":1E2},
  {"type":"message","role":"user","content":[ {"type":"input_text","text":"<system-reminder>be quick</system-reminder>"} ]},
  {"type":"message","role":"user","content":[ "bare" ]},
  {"type":"item_reference","id":"it_1"}
 ],"tools":[{"type":"function","name":"ls","parameters":{"type":"object"},"strict":false},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark","definition":"x"}},{"type":"namespace","name":"agents","tools":[{"type":"function","name":"spawn","parameters":{}},{"type":"function","name":"ls"}]},{"type":"web_search"}],
 "max_output_tokens":1000,"temperature":1.0,"stream":true,"store":false}`
	messagesBody = `{ "max_tokens":1000, "model":"m1","system":[ {"type":"text","text":"Be \u0062rief.","cache_control":{"type":"ephemeral","ttl":"1h"}} , {"type":"text","text":"And kind."}],
 "messages" : [
  {"role":"user","content":[{"type":"text","text":"List \"files\"","citations":null},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},
  {"role":"system","content":"# Environment\ncwd=/"},
  {"role":"assistant","content":[ {"type":"thinking","thinking":"I should\nlist.","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"},{"type":"text","text":"Sure. \ud83d\ude00"},
   {"type":"tool_use","id":"c1","name":"ls","input":{ "p": 1.0 , "q":"\u0061"},"caller":{"type":"direct"}},{"type":"tool_use","id":"c2","name":"cat","input":{}} ]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":[{"type":"text","text":"no such"},{"type":"tool_reference","tool_name":"deep"}]},
   {"tool_use_id":"c1","type":"tool_result","content":"a.txt","is_error":false,"cache_control":{"type":"ephemeral"}},
   {"type":"text","text":"<system-reminder>be quick</system-reminder>"},{"type":"mystery","n":0.10},"bare"]},
  {"role":"assistant","content":"Done."},{"role":"user","content":"Thanks \u00e9"}
 ],"temperature":1.0e0,"stream":true,"stop_sequences":["END"],
 "tools":[{"name":"ls","description":"List.","input_schema":{"type":"object","properties":{"p":{"type":"number"}}}},{"name":"deep","defer_loading":true,"input_schema":{}},{"type":"bash_20250124","name":"bash"}],
 "x_unknown":{"b":1.50}} `
)

var bodies = []string{chatBody, responsesBody, messagesBody}

// blocksOf lists all blocks of a request, including nested ones.
func blocksOf(r *block.Request) []block.Block {
	var list []block.Block
	var walk func([]block.Block)
	walk = func(in []block.Block) {
		for _, b := range in {
			list = append(list, b)
			walk(b.Content)
		}
	}
	for _, t := range r.Turns() {
		walk(t.Blocks)
	}
	return list
}

func decoded(t require.TestingT, i int) *block.Request {
	r, err := apis[i].decode([]byte(bodies[i]), nil)
	require.NoError(t, err)
	return r
}

func setModel(t require.TestingT, r *block.Request, model string) {
	p := r.Params()
	p.Model = model
	require.NoError(t, r.SetParams(p))
}

func encoded(t require.TestingT, r *block.Request) string {
	out, err := r.AppendBody(nil)
	require.NoError(t, err)
	return string(out)
}

// TestEditOneBlock changes the text of every block with text, one at a time, in each API: only the string of that text
// changes.
func TestEditOneBlock(t *testing.T) {
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			n := 0
			for k, b := range blocksOf(decoded(t, i)) {
				if b.Text == "" {
					continue
				}
				r := decoded(t, i)
				off, end := b.At.Span()
				require.NoError(t, r.SetText(blocksOf(r)[k].At, "new \"text\"\n"))
				out := encoded(t, r)
				const want = `"new \"text\"\n"`
				// The old string is inside the block's span and is the only change.
				old, _ := json.Marshal(b.Text)
				at := strings.Index(out, want)
				require.True(t, at >= off && at < end, "block %d", k)
				tail := out[at+len(want):]
				body := bodies[i]
				require.Equal(t, body[:at], out[:at])
				require.True(t, strings.HasSuffix(body, tail))
				var had string
				require.NoError(t, json.Unmarshal([]byte(body[at:len(body)-len(tail)]), &had), "%s", old)
				require.Equal(t, b.Text, had)
				require.Equal(t, "new \"text\"\n", blocksOf(r)[k].Text, "the view shows the edit")
				n++
			}
			require.Greater(t, n, 5)
		})
	}
}

func TestEncodeUneditedRequest(t *testing.T) {
	for i, a := range apis {
		r := decoded(t, i)
		require.Equal(t, bodies[i], encoded(t, r))
		out, losses, err := a.encode([]byte("x"), r, nil)
		require.NoError(t, err)
		require.Empty(t, losses)
		require.Equal(t, "x"+bodies[i], string(out))
		p := r.Params()
		require.NoError(t, r.SetParams(p)) // no difference
		require.Equal(t, bodies[i], encoded(t, r))
	}
}

func TestSet(t *testing.T) {
	tests := []struct {
		name     string
		api      int
		pick     func(b block.Block) bool
		change   func(b *block.Block)
		old, new string // the difference in the body
	}{
		{"chat arguments", 0, is(block.ToolCall, "c1"), func(b *block.Block) { b.Args = `{"p":2}` },
			`"{ \"p\": 1.0 }"`, `"{\"p\":2}"`},
		{"chat call id and name", 0, is(block.ToolCall, "c2"), func(b *block.Block) { b.CallID, b.Name = "c9", "dog" },
			`"c2","type":"function","function":{"arguments":"{broken","name":"cat"}`,
			`"c9","type":"function","function":{"arguments":"{broken","name":"dog"}`},
		{"chat result", 0, is(block.ToolResult, "c2"), func(b *block.Block) { b.Content = text("fine") },
			`[{"type":"text","text":"no such"} ]`, `"fine"`},
		{"chat text to image", 0, isText("List \"files\""), func(b *block.Block) {
			*b = block.Block{Kind: block.Image, Media: &block.Media{URL: "http://i"}}
		}, `{"type":"text","text":"List \"files\"","y":1E2}`, `{"type":"image_url","image_url":{"url":"http://i"}}`},
		{"responses arguments", 1, is(block.ToolCall, "c1"), func(b *block.Block) { b.Args = `{}` }, `"{ \"p\": 1.0 }"`, `"{}"`},
		{"responses custom input", 1, is(block.ToolCall, "c2"), func(b *block.Block) { b.Args = "x" }, `"*** Begin\n"`, `"x"`},
		{"responses reasoning", 1, func(b block.Block) bool { return b.Kind == block.Reasoning },
			func(b *block.Block) { b.Encrypted = "" }, `"encrypted_content":"b3Bh"`, `"encrypted_content":""`},
		{"responses result", 1, is(block.ToolResult, "c1"), func(b *block.Block) { b.Content = append(b.Content, text("b")...) },
			`"output":"a.txt"`, `"output":[{"type":"input_text","text":"a.txt"},{"type":"input_text","text":"b"}]`},
		{"messages signature", 2, func(b block.Block) bool { return b.Signature != "" }, func(b *block.Block) { b.Signature = "n" },
			`"c2ln"`, `"n"`},
		{"messages redacted", 2, func(b block.Block) bool { return b.Redacted }, func(b *block.Block) { b.Encrypted = "n" },
			`"cmVk"`, `"n"`},
		{"messages input", 2, is(block.ToolCall, "c1"), func(b *block.Block) { b.Args = `{"p" : 2}` },
			`{ "p": 1.0 , "q":"\u0061"}`, `{"p" : 2}`},
		{"messages is_error added", 2, is(block.ToolResult, "c1"), func(b *block.Block) { b.IsError = true },
			`"is_error":false`, `"is_error":true`},
		{"messages string to cached block", 2, isText("Done."), func(b *block.Block) { b.Cache = &block.Cache{Type: "ephemeral"} },
			`"Done."`, `[{"type":"text","text":"Done.","cache_control":{"type":"ephemeral"}}]`},
		{"messages reference to text", 2, func(b block.Block) bool { return b.Kind == block.ToolReference },
			func(b *block.Block) { *b = block.Block{Kind: block.Text, Text: "t"} },
			`{"type":"tool_reference","tool_name":"deep"}`, `{"type":"text","text":"t"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := decoded(t, tt.api)
			b := pick(t, r, tt.pick)
			tt.change(&b)
			at := pick(t, r, tt.pick).At
			require.NoError(t, r.Set(at, b))
			require.Equal(t, 1, strings.Count(bodies[tt.api], tt.old))
			if diff := cmp.Diff(strings.Replace(bodies[tt.api], tt.old, tt.new, 1), encoded(t, r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func is(k block.Kind, callID string) func(block.Block) bool {
	return func(b block.Block) bool { return b.Kind == k && b.CallID == callID }
}

func isText(s string) func(block.Block) bool {
	return func(b block.Block) bool { return b.Kind == block.Text && b.Text == s }
}

func text(s string) []block.Block { return []block.Block{{Kind: block.Text, Text: s}} }

func pick(t require.TestingT, r *block.Request, f func(block.Block) bool) block.Block {
	for _, b := range blocksOf(r) {
		if f(b) {
			return b
		}
	}
	require.Fail(t, "no such block")
	return block.Block{}
}

func TestInsertDelete(t *testing.T) {
	tests := []struct {
		name     string
		api      int
		change   func(t *testing.T, r *block.Request) error
		old, new string
	}{
		{"chat delete one call", 0, func(t *testing.T, r *block.Request) error {
			return r.Delete(pick(t, r, is(block.ToolCall, "c1")).At)
		}, `{"id":"c1","type":"function","function":{"name":"ls", "arguments":"{ \"p\": 1.0 }"}},`, ``},
		{"chat delete all calls", 0, func(t *testing.T, r *block.Request) error {
			if err := r.Delete(pick(t, r, is(block.ToolCall, "c1")).At); err != nil {
				return err
			}
			return r.Delete(pick(t, r, is(block.ToolCall, "c2")).At)
		}, `,"tool_calls":[ {"id":"c1","type":"function","function":{"name":"ls", "arguments":"{ \"p\": 1.0 }"}},{"index":1,"id":"c2","type":"function","function":{"arguments":"{broken","name":"cat"}} ]`, ``},
		{"chat delete reasoning", 0, func(t *testing.T, r *block.Request) error {
			return r.Delete(pick(t, r, func(b block.Block) bool { return b.Kind == block.Reasoning }).At)
		}, `"reasoning_content":"I should\nlist.",`, ``},
		{"chat delete a result", 0, func(t *testing.T, r *block.Request) error {
			return r.Delete(pick(t, r, is(block.ToolResult, "c1")).At)
		}, `{"role":"tool","tool_call_id":"c1","content":"a.txt"},` + "\n  ", ``},
		{"chat string becomes a list", 0, func(_ *testing.T, r *block.Request) error {
			return r.Insert(r.Turns()[0].At, text("Really.")...)
		}, `"Be \u0062rief."`, `[{"type":"text","text":"Be \u0062rief."},{"type":"text","text":"Really."}]`},
		{"chat insert call", 0, func(t *testing.T, r *block.Request) error {
			return r.Insert(pick(t, r, is(block.ToolCall, "c2")).At, block.Block{Kind: block.ToolCall, CallID: "n", Name: "f", Args: "{}"})
		}, `{"index":1,`, `{"id":"n","type":"function","function":{"name":"f","arguments":"{}"}},{"index":1,`},
		{"chat insert turn", 0, func(_ *testing.T, r *block.Request) error {
			return r.InsertTurn(1, block.Turn{Role: block.RoleSystem, Blocks: text("s")})
		}, `"x":null},`, `"x":null},{"role":"system","content":"s"},`},
		{"responses delete message part with its item", 1, func(t *testing.T, r *block.Request) error {
			return r.Delete(pick(t, r, isText("Sure. 😀")).At)
		}, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Sure. \ud83d\ude00","annotations":[ ],"logprobs":[]}],"status":"completed"},` + "\n  ", ``},
		{"responses insert reasoning", 1, func(t *testing.T, r *block.Request) error {
			return r.Insert(pick(t, r, is(block.ToolCall, "c2")).At, block.Block{Kind: block.Reasoning, Text: "hm"})
		}, `1.0 }","status":"completed"},`,
			`1.0 }","status":"completed"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},`},
		{"responses insert text before a part", 1, func(t *testing.T, r *block.Request) error {
			return r.Insert(pick(t, r, isText("Sure. 😀")).At, text("Well.")...)
		}, `{"type":"output_text",`, `{"type":"output_text","text":"Well."},{"type":"output_text",`},
		{"responses delete instructions", 1, func(_ *testing.T, r *block.Request) error { return r.Delete(r.Turns()[0].At) },
			`"instructions":"Be \u0062rief.",`, ``},
		{"responses append a turn of results", 1, func(_ *testing.T, r *block.Request) error {
			return r.Append(block.Turn{Role: block.RoleTool, Blocks: []block.Block{{Kind: block.ToolResult, CallID: "q", Content: text("r")}}})
		}, `"id":"it_1"}`, `"id":"it_1"},{"type":"function_call_output","call_id":"q","output":"r"}`},
		{"messages insert into a result that is a string", 2, func(t *testing.T, r *block.Request) error {
			return r.Insert(pick(t, r, isText("a.txt")).At, text("first")...)
		}, `"a.txt"`, `[{"type":"text","text":"first"},{"type":"text","text":"a.txt"}]`},
		{"messages delete system block", 2, func(_ *testing.T, r *block.Request) error {
			return r.Delete(r.Turns()[0].Blocks[0].At)
		}, `{"type":"text","text":"Be \u0062rief.","cache_control":{"type":"ephemeral","ttl":"1h"}} , `, ``},
		{"messages delete a message with its only block", 2, func(t *testing.T, r *block.Request) error {
			return r.Delete(pick(t, r, isText("Done.")).At)
		}, `"bare"]},` + "\n  " + `{"role":"assistant","content":"Done."},`, `"bare"]},`},
		{"messages insert system block", 2, func(_ *testing.T, r *block.Request) error {
			return r.InsertTurn(0, block.Turn{Role: block.RoleSystem, Blocks: text("Zero.")})
		}, `[ {"type":"text","text":"Be`, `[ {"type":"text","text":"Zero."},{"type":"text","text":"Be`},
		{"messages tools", 2, func(_ *testing.T, r *block.Request) error {
			if err := r.SetTools(append(r.Tools(), block.Tool{Name: "n", Schema: []byte(`{}`)})...); err != nil {
				return err
			}
			return r.SetTools(slices.Delete(slices.Clone(r.Tools()), 1, 2)...)
		}, `,{"name":"deep","defer_loading":true,"input_schema":{}},{"type":"bash_20250124","name":"bash"}`,
			`,{"type":"bash_20250124","name":"bash"},{"name":"n","input_schema":{}}`},
		{"chat model and limit keep their spelling", 0, func(_ *testing.T, r *block.Request) error {
			n := int64(7)
			p := r.Params()
			p.Model, p.MaxTokens = "other", &n
			return r.SetParams(p)
		}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := decoded(t, tt.api)
			require.NoError(t, tt.change(t, r))
			out := encoded(t, r)
			if tt.old == "" {
				want := strings.Replace(bodies[0], `"m\u0031"`, `"other"`, 1)
				require.Equal(t, strings.Replace(want, `1e3`, `7`, 1), out)
				return
			}
			require.Equal(t, 1, strings.Count(bodies[tt.api], tt.old))
			if diff := cmp.Diff(strings.Replace(bodies[tt.api], tt.old, tt.new, 1), out); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStale(t *testing.T) {
	r := decoded(t, 2)
	at := r.Turns()[0].Blocks[0].At
	require.NoError(t, r.Insert(r.Turns()[1].At, text("more")...))
	_ = r.Turns() // parses again: positions are new
	err := r.SetText(at, "x")
	be, ok := errors.AsType[*block.Error](err)
	require.True(t, ok)
	require.Equal(t, block.Stale, be.Kind)
	require.Error(t, r.Delete(block.Ref{}))
	require.Error(t, decoded(t, 2).Set(pick(t, decoded(t, 2), isText("Done.")).At, block.Block{}))
}

// TestEditsOfOneList edits with the positions of turns that were read once. The view then equals the edited body. A turn that has
// pending insertions cannot be deleted.
func TestEditsOfOneList(t *testing.T) {
	for i := range apis {
		rapid.Check(t, func(t *rapid.T) {
			r := decoded(t, i)
			turns := r.Turns()
			grown := map[int]bool{}
			for range rapid.IntRange(1, 12).Draw(t, "edits") {
				k := rapid.IntRange(0, len(turns)-1).Draw(t, "turn")
				at := turns[k]
				var err error
				switch op := rapid.SampledFrom([]string{"drop", "drop", "delete", "append", "text"}).Draw(t, "op"); op {
				case "drop":
					if err = r.Delete(at.At); err == nil && grown[k] {
						t.Fatalf("turn %d was deleted with its insertions", k)
					}
				case "delete":
					if len(at.Blocks) > 0 {
						err = r.Delete(at.Blocks[rapid.IntRange(0, len(at.Blocks)-1).Draw(t, "block")].At)
					}
				case "append":
					if err = r.Insert(at.At, text("app")...); err == nil {
						grown[k] = true
					}
				case "text":
					if len(at.Blocks) > 0 {
						err = r.SetText(at.Blocks[0].At, "new")
					}
				}
				if be, ok := errors.AsType[*block.Error](err); err != nil && (!ok || be.Kind != block.Unsupported && be.Kind != block.Stale) {
					t.Fatal(err)
				}
			}
			out, err := r.AppendBody(nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := apis[i].decode(out, nil)
			if err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if diff := cmp.Diff(r.Turns(), again.Turns()); diff != "" {
				t.Fatalf("view and body differ:\n%s\n%s", diff, out)
			}
		})
	}
}

// TestEditLargeTurn checks that an edit of one block does not copy the turn's other blocks, except for the first one.
func TestEditLargeTurn(t *testing.T) {
	const blocks, edits = 5000, 500
	r, err := messages.Decode([]byte(`{"messages":[{"role":"user","content":[`+strings.Repeat(`{"type":"text","text":"a"},`, blocks)+`{"type":"text","text":"a"}]}]}`), nil)
	require.NoError(t, err)
	list := r.Turns()[0].Blocks
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range edits {
		require.NoError(t, r.SetText(list[i].At, "b"))
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / edits; n > 64<<10 {
		t.Errorf("an edit allocates %d bytes", n)
	}
}

func TestEditAgain(t *testing.T) {
	r := decoded(t, 2)
	require.NoError(t, r.Commit())
	setModel(t, r, "other")
	require.Equal(t, bodies[2], string(r.Body()))
	require.Equal(t, `"other"`, string(r.Field("model")))
	require.Equal(t, encoded(t, r), string(r.Body()))
	require.Equal(t, "ephemeral", r.Turns()[0].Blocks[0].Cache.Type)
	require.Nil(t, r.Field("model", "x"))
	require.Nil(t, block.NewRequest().Field("model"))
}

func TestUnsupported(t *testing.T) {
	r := decoded(t, 2)
	p := r.Params()
	n := int64(3)
	p.Sampling.Seed = &n
	require.Error(t, r.SetParams(p))
	require.Equal(t, bodies[2], encoded(t, r), "a refused edit changes nothing")
}

// TestEditRejectsInvalidJSON checks that invalid raw JSON in an edit cannot produce an invalid body.
func TestEditRejectsInvalidJSON(t *testing.T) {
	r := decoded(t, 2)
	require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "n", Schema: []byte(`{broken`)})...))
	_, err := r.AppendBody(nil)
	require.Error(t, err)
	require.Equal(t, err, r.Commit())
	r = decoded(t, 0)
	p := r.Params()
	p.Format = block.Format{Type: "json_schema", Schema: []byte(`{broken`)}
	require.NoError(t, r.SetParams(p))
	_, err = r.AppendBody(nil)
	require.Error(t, err)
}

// TestEditsUpdateView makes random edits and checks that the view equals what decoding the encoded body returns.
func TestEditsUpdateView(t *testing.T) {
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := decoded(t, i)
				var list []block.Block
				for range rapid.IntRange(1, 5).Draw(t, "edits") {
					if len(list) == 0 || rapid.Bool().Draw(t, "read") {
						list = blocksOf(r) // otherwise use positions from before the last edit
					}
					if len(list) == 0 {
						break
					}
					b := list[rapid.IntRange(0, len(list)-1).Draw(t, "block")]
					op := rapid.SampledFrom([]string{"text", "args", "delete", "insert", "append", "turn", "kind", "drop"}).Draw(t, "op")
					var err error
					switch op {
					case "text":
						err = r.SetText(b.At, fmt.Sprint("n", rapid.IntRange(0, 9).Draw(t, "n"), "\u00e9\\"))
					case "args":
						b.Args, b.CallID = `{"z":[1]}`, b.CallID+"x"
						err = r.Set(b.At, b)
					case "delete":
						err = r.Delete(b.At)
					case "insert":
						err = r.Insert(b.At, block.Block{Kind: block.Text, Text: "ins"})
					case "append":
						err = r.Insert(r.Turns()[rapid.IntRange(0, len(r.Turns())-1).Draw(t, "turn")].At, text("app")...)
					case "kind":
						err = r.Set(b.At, block.Block{Kind: block.Image, Media: &block.Media{URL: "https://i"}})
					case "turn":
						err = r.InsertTurn(rapid.IntRange(0, len(r.Turns())).Draw(t, "turn"),
							block.Turn{Role: block.RoleAssistant, Blocks: text("t")})
					case "drop":
						err = r.Delete(r.Turns()[rapid.IntRange(0, len(r.Turns())-1).Draw(t, "turn")].At)
					}
					if err != nil {
						be, ok := errors.AsType[*block.Error](err)
						if !ok || be.Kind != block.Unsupported && be.Kind != block.Stale {
							t.Fatalf("%s: %v", op, err)
						}
					}
				}
				shown := r.Turns()
				out, err := r.AppendBody(nil)
				if err != nil {
					t.Fatal(err)
				}
				again, err := a.decode(bytes.Clone(out), nil)
				if err != nil {
					t.Fatalf("%v in %s", err, out)
				}
				if diff := cmp.Diff(shown, again.Turns()); diff != "" {
					t.Fatalf("view and body differ:\n%s\n%s", diff, out)
				}
			})
		})
	}
}

// TestSetTextKinds checks which kinds have a text: tool results through their content, calls and images not.
func TestSetTextKinds(t *testing.T) {
	for i := range apis {
		r := decoded(t, i)
		for _, b := range blocksOf(r) {
			before := encoded(t, r)
			switch b.Kind {
			case block.ToolCall, block.Image, block.Unknown:
				err := r.SetText(b.At, "new")
				be, ok := errors.AsType[*block.Error](err)
				require.True(t, ok, "%v", b)
				require.Equal(t, block.Unsupported, be.Kind)
				require.Equal(t, before, encoded(t, r))
			}
		}
		for {
			k := slices.IndexFunc(blocksOf(r), func(b block.Block) bool {
				return b.Kind == block.ToolResult && len(b.Content) == 1 && b.Content[0].Kind == block.Text && b.Content[0].Text != "new"
			})
			if k < 0 {
				break
			}
			require.NoError(t, r.SetText(blocksOf(r)[k].At, "new"))
		}
		require.Contains(t, encoded(t, r), "new")
	}
}

// TestSetParamsKeepsUnknownFields changes parameters that share an object, or have several spellings: fields that are not modeled
// are preserved, and the body agrees with the view.
func TestSetParamsKeepsUnknownFields(t *testing.T) {
	n, m := int64(9), int64(8)
	tests := []struct {
		name string
		api  int
		body string // without the messages
		set  func(p *block.Params)
		want string
	}{
		{"an effort among others", 1, `"reasoning":{"effort":"low","context":"all_turns","mode":"pro"}`, func(p *block.Params) { p.Thinking.Effort = "high" },
			`"reasoning":{"effort":"high","context":"all_turns","mode":"pro"}`},
		{"no effort", 1, `"reasoning":{"effort":"low","context":"all_turns"}`, func(p *block.Params) { p.Thinking.Effort = "" }, `"reasoning":{"context":"all_turns"}`},
		{"the first effort", 1, `"reasoning":{"context":"all_turns"}`, func(p *block.Params) { p.Thinking.Effort = "low" }, `"reasoning":{"context":"all_turns","effort":"low"}`},
		{"an object that held nothing else", 1, `"reasoning":{"effort":"low"}`, func(p *block.Params) { p.Thinking.Effort = "" }, ``},
		{"a display", 2, `"thinking":{"type":"adaptive","display":"omitted"}`, func(p *block.Params) { p.Thinking.Mode = block.ThinkingOff }, `"thinking":{"type":"disabled","display":"omitted"}`},
		{"a user among other metadata", 2, `"metadata":{"user_id":"u","x":1}`, func(p *block.Params) { p.User = "v" }, `"metadata":{"user_id":"v","x":1}`},
		{"a user where there was none", 2, `"metadata":{"user_id":[],"x":1}`, func(p *block.Params) { p.User = "v" }, `"metadata":{"user_id":"v","x":1}`},
		{"a user in place of anything", 2, `"metadata":5`, func(p *block.Params) { p.User = "v" }, `"metadata":{"user_id":"v"}`},
		{"a hint of the wrong type stays", 0, `"user":5,"top_p":1`, func(p *block.Params) { p.Sampling.TopP = nil }, `"user":5`},
		{"usage", 0, `"stream_options":{"include_usage":true,"continuous_usage_stats":true}`, func(p *block.Params) { p.StreamUsage = false }, `"stream_options":{"continuous_usage_stats":true}`},
		{"a schema inside", 0, `"response_format":{"type":"json_schema","json_schema":{"name":"a","x":1,"schema":{"b":2}}}`, func(p *block.Params) { p.Format.Name = "c" },
			`"response_format":{"type":"json_schema","json_schema":{"name":"c","x":1,"schema":{"b":2}}}`},
		{"both limits", 0, `"max_completion_tokens":5,"max_tokens":7`, func(p *block.Params) { p.MaxTokens = &n }, `"max_completion_tokens":9,"max_tokens":7`},
		{"the old limit", 0, `"max_tokens":7`, func(p *block.Params) { p.MaxTokens = &m }, `"max_tokens":8`},
		{"a choice spelled function_call", 0, `"function_call":"none"`, func(p *block.Params) { p.ToolChoice = block.ToolChoice{} }, ``},
		{"another choice", 0, `"function_call":"none"`, func(p *block.Params) { p.ToolChoice.Mode = block.Auto }, `"tool_choice":"auto"`},
		{"a format spelled output_format", 2, `"output_format":{"type":"json_schema","schema":{}}`, func(p *block.Params) { p.Format = block.Format{} }, ``},
		{"an effort with output_format", 2, `"output_format":{"type":"json_schema","schema":{}}`, func(p *block.Params) { p.Thinking.Effort = "low" },
			`"output_config":{"effort":"low","format":{"type":"json_schema","schema":{}}}`},
		{"token ids in stop", 0, `"stop":[1,2,"a"]`, func(p *block.Params) { p.Sampling.Stop = []string{"b"} }, `"stop":["b"],"stop_token_ids":[1,2]`},
		{"no token ids in stop", 0, `"stop":[1,2,"a"]`, func(p *block.Params) { p.Sampling.StopTokens = nil }, `"stop":["a"]`},
		{"parallel calls in the choice", 1, `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, func(p *block.Params) { p.ToolChoice.Serial = false }, `"tool_choice":{"type":"auto"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := []string{"messages", "input", "messages"}[tt.api]
			head := `{"` + list + `":[{"role":"user","content":"hi"}]`
			join := func(s string) string {
				if s == "" {
					return head + "}"
				}
				return head + "," + s + "}"
			}
			r, err := apis[tt.api].decode([]byte(join(tt.body)), nil)
			require.NoError(t, err)
			p := r.Params()
			tt.set(&p)
			require.NoError(t, r.SetParams(p))
			require.Equal(t, p, r.Params())
			out := encoded(t, r)
			same, diff := equalJSON([]byte(join(tt.want)), []byte(out))
			require.True(t, same, "%s\n%s", out, diff)
			again, err := apis[tt.api].decode([]byte(out), nil)
			require.NoError(t, err)
			require.Equal(t, p, again.Params(), "%s", out)
		})
	}
}

// TestInsertToolKeepsNamespace checks that a tool without a namespace is not inserted into one, and that a tool with a
// namespace gets its own.
func TestInsertToolKeepsNamespace(t *testing.T) {
	const body = `{"input":[],"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"}]}]}`
	r, err := apis[1].decode([]byte(body), nil)
	require.NoError(t, err)
	require.NoError(t, r.SetTools(slices.Insert(r.Tools(), 0, block.Tool{Name: "x", Schema: []byte(`{}`)})...))
	require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "y", Namespace: "m", Schema: []byte(`{}`)})...))
	require.NoError(t, r.SetTools(slices.Insert(r.Tools(), 1, block.Tool{Name: "z", Namespace: "n", Schema: []byte(`{}`)})...))
	var names []string
	for _, tool := range r.Tools() {
		names = append(names, tool.Namespace+"/"+tool.Name)
	}
	require.Equal(t, []string{"/x", "n/z", "n/a", "m/y"}, names)
	c := decoded(t, 0)
	require.Error(t, c.SetTools(append(c.Tools(), block.Tool{Name: "y", Namespace: "m"})...))
}

// TestManyEdits edits every turn of a long conversation, with one slice of turns and calling Turns each time: the
// allocations of an edit do not depend on the length of the conversation.
func TestManyEdits(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	long := func(n int) *block.Request {
		var b strings.Builder
		b.WriteString(`{"messages":[`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"role":"user","content":"a"}`)
		}
		r, err := apis[0].decode([]byte(b.String()+"]}"), nil)
		require.NoError(t, err)
		return r
	}
	cost := func(n int) uint64 {
		r := long(n)
		turns := r.Turns()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, turn := range turns {
			require.NoError(t, r.SetText(turn.Blocks[0].At, "b"))
		}
		runtime.ReadMemStats(&after)
		require.Equal(t, "a", turns[n-1].Text(""), "a slice returned earlier keeps its contents")
		require.Equal(t, "b", r.Turns()[n-1].Text(""))
		require.Equal(t, n, strings.Count(encoded(t, r), `"b"`))
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := cost(500), cost(5000)
	require.Less(t, large, 20*small)
}

// TestConcurrentReaders reads a request that is not edited from many goroutines.
func TestConcurrentReaders(t *testing.T) {
	r := decoded(t, 2)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_, _, _ = r.Turns(), r.Tools(), r.Params()
				if _, err := r.AppendBody(nil); err != nil || r.Params().Model == "" || r.Field("cache_control") != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
