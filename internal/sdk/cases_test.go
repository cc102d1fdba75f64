// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// A scene is a response that every API has to get across.
type scene struct {
	name   string
	events []event.Event
	setup  setup
	only   []*api // nil means all
}

var (
	some = event.Tokens{Prompt: 10}
	done = event.Tokens{Prompt: 10, Output: 5}
)

// Annotations in the form of each API.
const (
	chatNote     = `{"type":"url_citation","url_citation":{"start_index":0,"end_index":2,"title":"T","url":"http://x/"}}`
	responseNote = `{"type":"url_citation","start_index":0,"end_index":2,"title":"T","url":"http://x/"}`
	messageNote  = `{"type":"char_location","cited_text":"so","document_index":0,"document_title":"T","start_char_index":0,"end_char_index":2}`
)

// patch is free text with everything that JSON has to escape.
const patch = "*** Begin Patch\n*** Update File: a.go\n@@\n-\tx := \"\\u00e9\"\n+\tx := `é\\n😀`\n*** End Patch\n\x00\x1f"

// example is the worked example of protocols/testdata.
func example() []event.Event {
	return begin(event.Tokens{Prompt: 120, Cached: 100}).think("a", "b").call("get", "", `{"x":`, `1}`).think("c").call("put", "", "{}").
		text("ok").usage(event.Tokens{Prompt: 120, Cached: 100, Output: 9, Reasoning: 3}).finish(event.ToolCalls).events
}

func scenes() []scene {
	list := []scene{
		{name: "worked example", events: example()},
		{name: "text", events: begin(some).text("Hel", "lo", ".").usage(done).finish(event.Stop).events},
		{name: "nothing", events: begin(some).usage(done).finish(event.Stop).events},
		{name: "empty text", events: begin(some).text("", "").usage(done).finish(event.Stop).events},
		{name: "no start", events: begin(some).text("Hi").usage(done).finish(event.Stop).events[1:]},
		{name: "blank text", events: begin(some).text("\n\n", " ").call("get", "c1", "{}").text("\n").usage(done).finish(event.Stop).events},
		{name: "markup in text", events: begin(some).text("<b> & </b>", "\u2028", "data: [DONE]\n\n", "\r\n\r\nevent: x\ndata: {}\n\n").usage(done).finish(event.Stop).events},
		{
			name: "characters over deltas",
			events: begin(some).think("caf\xc3", "\xa9 \xe2\x82", "\xac").text("\xf0", "\x9f\x98", "\x80 e", "\u0301 ", "\xef\xbf", "\xbd").
				call("näme", "", "{\"s\":\"\xf0\x9f", "\x98\x80 \xc3", "\xa9\"}").refuse("\xe4\xbd", "\xa0").usage(done).finish(event.Stop).events,
		},
		{
			name: "damaged characters",
			events: begin(some).think("a\xff\xc3").text("b\xe2\x82").call("get", "", "{\"s\":\"\xed\xa0\x80\"}").text("\x80c\xf0\x9f").
				usage(done).finish(event.Stop).events,
		},
		{
			name:   "control characters",
			events: begin(some).think("\x00\x01").text("\x1b[0m\x7f\t\"\\/\b\f\r\n").call("get", "", `{"s":"\u0000\ud83d\ude00"}`).usage(done).finish(event.Stop).events,
		},

		{name: "refusal", events: begin(some).refuse("I can", "not.").usage(done).finish(event.Stop).events},
		{name: "refusal after text", events: begin(some).text("Well, ").refuse("no.").usage(done).finish(event.Refused).events},
		{name: "refused without text", events: begin(some).usage(done).finish(event.Refused).events},
		{name: "content filter", events: begin(some).text("Once upon").usage(done).finish(event.ContentFilter).events},
		{name: "length in text", events: begin(some).think("a").text("Once upon").usage(done).finish(event.Length).events},
		{name: "length in reasoning", events: begin(some).think("Let me").usage(done).finish(event.Length).events},
		{name: "context full", events: begin(some).text("Once").usage(done).finish(event.ContextFull).events},
		{name: "stop sequence", events: begin(some).text("one two").usage(done).finish(event.StopSequence, "\n\nthree\"").events},
		{name: "stop sequence after a call", events: begin(some).call("get", "", "{}").usage(done).finish(event.StopSequence, "x").events},
		{name: "paused", events: begin(some).text("Searching").usage(done).finish(event.Paused).events},
		{name: "tool_calls without a call", events: begin(some).text("Well").usage(done).finish(event.ToolCalls).events},
		{name: "stop with a call", events: begin(some).call("get", "", "{}").usage(done).finish(event.Stop).events},

		{name: "parallel calls, one after the other", events: begin(some).call("get", "call_a", `{"n":1}`).call("get", "call_b", `{"n":`, `2}`).call("put", "call_c").usage(done).finish(event.ToolCalls).events},
		{
			name: "parallel calls, interleaved",
			events: begin(some).open(0, "get", "call_a", `{"n"`).open(0, "put", "call_b", `{"m"`).args(0, ":1").args(1, ":").args(0, "}").
				end(0).args(1, "2}").end(1).text("both").usage(done).finish(event.ToolCalls).events,
		},
		{name: "same id twice", events: begin(some).call("get", "call_a", `{}`).call("get", "call_a", `{}`).usage(done).finish(event.ToolCalls).events},
		{name: "ids of Kimi", events: begin(some).call("get", "functions.get:0", `{}`).call("get", "functions.get:1", `{}`).usage(done).finish(event.ToolCalls).events},
		{name: "an id that looks escaped", events: begin(some).call("get", "tc_xD1", `{}`).usage(done).finish(event.ToolCalls).events},
		{name: "text after calls", events: begin(some).text("Look.").call("get", "", `{}`).text("And").call("put", "", `{}`).text("that's it.").usage(done).finish(event.ToolCalls).events},
		{name: "empty arguments", events: begin(some).call("get", "").call("get", "", "").call("get", "", "{}").call("get", "", "{", "}").usage(done).finish(event.ToolCalls).events},
		{
			name:   "arguments byte for byte",
			events: begin(some).call("get", "", `{ "z":1.50, "a" : 1e2,"big":12345678901234567890, "u":"\u00e9\/<>&","n":[ ],"z2":-0}`).usage(done).finish(event.ToolCalls).events,
		},
		{name: "long arguments", events: begin(some).call("put", "", `{"t":"`, strings.Repeat("0123456789", 3000), `"}`).usage(done).finish(event.ToolCalls).events},
		{name: "many calls", events: many(200)},
		{name: "length in a call", events: begin(some).text("a").call("get", "", `{}`).open(0, "put", "", `{"x":"unfin`).usage(done).finish(event.Length).events},
		{name: "length after whole arguments", events: begin(some).open(0, "put", "", `{"x":1}`).usage(done).finish(event.Length).events},
		{name: "length before arguments", events: begin(some).open(0, "put", "").usage(done).finish(event.Length).events},
		{
			name: "aborted calls",
			events: begin(some).nameless().open(0, "put", "call_a", `{"x":[1`).abort(1, event.BadArguments).call("get", "", `{"y":2}`).
				open(0, "put", "", `{}`).abort(3, event.Truncated).text("sorry").usage(done).finish(event.ToolCalls).events,
		},
		{name: "only an aborted call", events: begin(some).open(0, "put", "", `{"x"`).abort(0, event.Truncated).usage(done).finish(event.Stop).events},
		{name: "aborted calls, held back", setup: setup{wholeCalls: true}, events: begin(some).open(0, "put", "", `{"x"`).abort(0, event.Truncated).call("get", "c", `{"a`, `":1}`).usage(done).finish(event.ToolCalls).events},
		{name: "calls in reasoning", events: begin(some).think("draft").flagged(event.InReasoning, "get", "", `{}`).think("no").text("Hi").usage(done).finish(event.Stop).events},
		{name: "calls in reasoning, sent", setup: setup{callsInReasoning: true}, events: begin(some).think("draft").flagged(event.InReasoning, "get", "", `{}`).think("no").text("Hi").usage(done).finish(event.Stop).events},

		{name: "custom call", events: begin(some).flagged(event.Custom, "apply_patch", "", patch[:40], patch[40:]).usage(done).finish(event.ToolCalls).events},
		{name: "custom call without input", events: begin(some).flagged(event.Custom, "apply_patch", "").usage(done).finish(event.ToolCalls).events},
		{name: "custom call, characters over deltas", events: begin(some).flagged(event.Custom, "apply_patch", "", "\xf0\x9f", "\x98\x80\xc3", "\xa9").usage(done).finish(event.ToolCalls).events},
		{name: "custom call, cut", events: begin(some).open(event.Custom, "apply_patch", "", "*** Begin").usage(done).finish(event.Length).events},
		{name: "custom and function calls", events: begin(some).call("get", "", "{}").flagged(event.Custom, "apply_patch", "", patch).call("get", "", "{}").usage(done).finish(event.ToolCalls).events},
		{
			name: "function call that is a custom one", setup: setup{tools: []block.Tool{{Kind: block.CustomTool, Name: "apply_patch"}}},
			events: begin(some).call("apply_patch", "", `{"inp`, `ut": "*** Begin\n\u00e`, `9 \ud83d`, `\ude00\"end\""}`).call("get", "", "{}").usage(done).finish(event.ToolCalls).events,
		},
		{
			name: "namespaces", setup: setup{tools: []block.Tool{
				{Name: "get"}, {Name: "patch"}, {Namespace: "mcp", Name: "get"}, {Namespace: "mcp", Name: "patch"},
			}}, only: []*api{responsesAPI},
			events: begin(some).call("mcp__get", "", "{}").call("get", "", "{}").flagged(event.Custom, "mcp__patch", "", "x").usage(done).finish(event.ToolCalls).events,
		},

		{name: "several reasoning runs", events: begin(some).think("a").text("b").think("c").next().think("d").text("e").call("get", "", "{}").think("f").usage(done).finish(event.ToolCalls).events},
		{name: "signed reasoning", events: begin(some).think("a", "b").sign("c2ln", "bmVk").call("get", "", "{}").think("c").sign("ZGVk").usage(done).finish(event.ToolCalls).events},
		{name: "omitted reasoning", events: begin(some).sign("b3BhcXVl").text("a").usage(done).finish(event.Stop).events},
		{name: "reasoning that is not to be shown", setup: setup{reasoning: wire.ReasoningOmitted}, events: begin(some).think("a").sign("b3BhcXVl").text("b").think("c").text("d").usage(done).finish(event.Stop).events},
		{name: "reasoning that is not sent", setup: setup{reasoning: wire.ReasoningNone}, events: begin(some).think("a").text("b").think("c").call("get", "", "{}").usage(done).finish(event.Stop).events},
		{name: "raw reasoning", setup: setup{reasoning: wire.ReasoningPlain}, events: begin(some).think("a", "b").text("c").think("d").usage(done).finish(event.Stop).events},
		{name: "reasoning in both fields, sealed", setup: setup{reasoning: wire.ReasoningBoth, seal: true}, events: begin(some).think("a", "b").text("c").think("d").sign("e").usage(done).finish(event.Stop).events},
		{name: "raw reasoning, sealed", setup: setup{reasoning: wire.ReasoningPlain, seal: true}, events: begin(some).think("a", "b").text("c").think("d").sign("e").usage(done).finish(event.Stop).events},
		{name: "sealed summary", setup: setup{seal: true}, events: begin(some).think("caf\xc3", "\xa9").text("c").usage(done).finish(event.Stop).events},
		{name: "two texts", events: begin(some).text("a").next().text("b").usage(done).finish(event.Stop).events},

		{name: "usage with everything", events: begin(event.Tokens{Prompt: 1000, Cached: 600}).text("a").usage(event.Tokens{Prompt: 1000, Cached: 640, CacheWrite: 300, Output: 50, Reasoning: 20}).finish(event.Stop).events},
		{name: "usage that is off", events: begin(event.Tokens{Prompt: 10, Cached: 16}).text("a").usage(event.Tokens{Prompt: 10, Cached: 16, CacheWrite: 3, Output: 5, Reasoning: 9}).finish(event.Stop).events},
		{name: "usage several times", events: begin(some).usage(event.Tokens{Prompt: 10, Output: 1}).text("a").usage(event.Tokens{Prompt: 10, Output: 2}).text("b").usage(done).finish(event.Stop).events},
		{name: "usage only at the start", events: begin(event.Tokens{Prompt: 10, Cached: 4}).text("a").finish(event.Stop).events},
		{name: "no usage", events: begin(event.Tokens{}).text("a").finish(event.Stop).events},

		{name: "logprobs", events: begin(some).probs(prob("so", "good")).text("so good").probs(prob("!")).text("!").usage(done).finish(event.Stop).events},
		{
			name: "four answers", events: begin(some).choice(2).text("c").choice(0).think("a").choice(3).call("get", "", `{"n":`).choice(0).call("get", "", `{}`).
				choice(2).text("c").finish(event.Length).choice(1).refuse("b").finish(event.Stop).choice(3).call("put", "x", `{}`).finish(event.ToolCalls).
				choice(0).text("a").finish(event.Stop).usage(done).events,
		},

		{name: "server tool", only: []*api{messagesAPI, chatAPI}, events: begin(some).think("look").flagged(event.Server, "web_search", "srvtoolu_1", `{"query":`, `"x"}`).
			other(event.ToolResult, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"http://x/","title":"T","encrypted_content":"e","page_age":null}]}`).
			text("so").note(messageNote).usage(done).finish(event.Stop).events},
		{name: "redacted thinking", only: []*api{messagesAPI}, events: begin(some).other(event.Opaque, `{"type":"redacted_thinking","data":"b3BhcXVl"}`).think("a").
			other(event.Opaque, "{\"type\":\"redacted_thinking\",\n\"data\":\"Mg==\"}").text("b").usage(done).finish(event.Stop).events},
		{name: "server items", only: []*api{responsesAPI}, events: begin(some).think("look").flagged(event.Server, "web_search", "", `{}`).
			other(event.ToolResult, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`).
			other(event.Opaque, "{\"id\":\"cmp_1\",\"type\":\"compaction\",\n \"encrypted_content\":\"e\"}").text("b").usage(done).finish(event.Stop).events},
	}
	for a, note := range map[*api]string{chatAPI: chatNote, responsesAPI: responseNote, messagesAPI: messageNote} {
		list = append(list, scene{
			name: "annotations of " + a.name, only: []*api{a},
			events: begin(some).text("so").note(note).note(strings.Replace(note, "T", "two\\n", 1)).text(" far").call("get", "", "{}").text("and").note(note).usage(done).finish(event.Stop).events,
		})
	}
	return list
}

// many returns a response with n calls, three of which are open at a time.
func many(n int32) []event.Event {
	s := begin(some)
	for i := range n {
		s.open(0, "get", "", `{"i":`)
		if i >= 2 {
			s.args(i-2, "0}").end(i - 2)
		}
	}
	return s.args(n-2, "0}").end(n-2).args(n-1, "0}").end(n - 1).usage(done).finish(event.ToolCalls).events
}

func prob(tokens ...string) string {
	var out []string
	for _, t := range tokens {
		out = append(out, `{"token":"`+t+`","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"`+t+`","logprob":-0.5,"bytes":[1]}]}`)
	}
	return "[" + strings.Join(out, ",") + "]"
}
