// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// A model is a family, a template, and a function that writes as the model does.
type model struct {
	name     string
	template func(testing.TB) template.Template
	family   *grammar.Grammar
	// more enables reasoning, and keep requests that all of it is kept; both are template variables.
	more, keep string
	// write returns a response to prompt as the model writes it. calls are values of the argument x.
	write func(prompt, thought, text string, calls ...string) string
	end   string // end of a turn, as the template prints it
	// mute specifies that the model has no reasoning, wordless that it writes calls without text, single that it writes
	// one call at a time.
	mute, wordless, single, noTools bool
	breaks                          string // why keep does not help everywhere
}

// reasoning writes reasoning between tags; the first tag is omitted if the prompt ends with it.
func reasoning(open, shut string) func(prompt, thought string) string {
	return func(prompt, thought string) string {
		if strings.HasSuffix(prompt, open) {
			return thought + shut
		}
		return open + thought + shut
	}
}

func hermesCalls(before string, calls []string) (out string) {
	for _, x := range calls {
		out += before + "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"" + x + "\"}}\n</tool_call>"
		before = "\n"
	}
	return out
}

func xmlCalls(before, between string, calls []string) (out string) {
	for _, x := range calls {
		out += before + "<tool_call>\n<function=f>\n<parameter=x>\n" + x + "\n</parameter>\n</function>\n</tool_call>"
		before = between
	}
	return out
}

// tagged writes reasoning in tags; gap separates text from the first call.
func tagged(open, shut, gap string, calls func(before string, calls []string) string) func(prompt, thought, text string, list ...string) string {
	return func(prompt, thought, text string, list ...string) string {
		before := gap
		if text == "" {
			before = ""
		}
		out := text
		if thought != "" {
			out = reasoning(open, shut)(prompt, thought) + text
		}
		if len(list) == 0 {
			return out
		}
		return out + calls(before, list)
	}
}

func dsml(block, space string) func(prompt, thought, text string, calls ...string) string {
	open, shut := "<｜DSML｜"+space, "</｜DSML｜"+space
	return tagged("<think>", "</think>", "\n\n", func(_ string, calls []string) string {
		out := "\n\n" + open + block + ">\n"
		for _, x := range calls {
			out += open + `invoke name="f">` + "\n" + open + `parameter name="x" string="true">` + x + shut + "parameter>\n" + shut + "invoke>\n"
		}
		return out + shut + block + ">"
	})
}

func models() []model {
	qwenXML := func(before string, calls []string) string { return xmlCalls(before, "\n", calls) }
	nemotron := func(shut string) func(prompt, thought, text string, calls ...string) string {
		return func(prompt, thought, text string, calls ...string) string {
			out := reasoning("<think>\n", shut)(prompt, thought) + text
			if len(calls) > 0 {
				out = strings.TrimSpace(out) + "\n" + xmlCalls("", "\n", calls) + "\n"
			}
			return out
		}
	}
	harmony := func(prompt, thought, text string, calls ...string) string {
		out := "<|channel|>analysis<|message|>" + thought + "<|end|><|start|>assistant"
		if len(calls) > 0 {
			return out + `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": "` + calls[0] + `"}<|call|>`
		}
		return out + "<|channel|>final<|message|>" + text
	}
	const im = "<|im_end|>\n"
	think := tagged("<think>\n", "\n</think>\n\n", "\n", hermesCalls)
	thinkXML := tagged("<think>\n", "\n</think>\n\n", "\n\n", qwenXML)
	return []model{
		{name: "qwen3", template: sharedTemplate("tok", "qwen3", "chat_template.jinja"), family: family.New("qwen3"), write: think, end: im, breaks: "it has no variable"},
		{name: "ChatML", template: written(lookup("chatml", nil)), family: family.New("hermes"), write: think, end: im, breaks: "it has no variable"},
		{name: "ChatML, always", template: written(lookup("chatml", variables{"reasoning_scope": "all"})), family: family.New("hermes"), write: think, end: im},
		{name: "qwen3-coder", template: written(lookup("chatml", variables{"calls": "xml"})), family: family.New("qwen3_coder"), write: thinkXML, end: im, breaks: "it has no variable"},
		{name: "qwen3.5", template: sharedTemplate("tok", "qwen3.5-renum", "chat_template.jinja"), family: family.New("qwen35"), more: `"enable_thinking":true`, write: thinkXML, end: im, breaks: "it has no variable"},
		{name: "qwen3.8", template: sharedTemplate("tok", "_templates", "qwen38_chat_template.jinja"), family: family.New("qwen35"), write: thinkXML, end: im, keep: `"preserve_thinking":true`},
		{name: "qwen3.8 narrow", template: sharedTemplate("tok", "_templates", "qwen38_chat_template.jinja"), family: family.New("qwen35"), more: `"preserve_thinking":false`, write: thinkXML, end: im, breaks: "it is told to drop"},
		{name: "nemotron nano", template: sharedTemplate("tok", "_templates", "nemotron3nano_chat_template.jinja2"), family: family.New("nemotron_nano"), keep: `"truncate_history_thinking":false`, write: nemotron("\n</think>\n"), end: im},
		{name: "nemotron 3.5", template: sharedTemplate("tok", "_templates", "nemotron35_chat_template.jinja2"), family: family.New("nemotron_nano"), keep: `"truncate_history_thinking":false`, write: nemotron("</think>"), end: im},
		{name: "gemma 4", template: sharedTemplate("tok", "_templates", "gemma4_31b_chat_template.jinja2"), family: family.New("gemma4"), more: `"enable_thinking":true`, keep: `"preserve_thinking":true`, wordless: true,
			breaks: "answers without calls go",
			write: func(prompt, thought, text string, calls ...string) string {
				out := reasoning("<|channel>thought\n", "\n<channel|>")(prompt, thought) + text
				for _, x := range calls {
					out += `<|tool_call>call:f{x:<|"|>` + x + `<|"|>}<tool_call|>`
				}
				return out
			}},
		{name: "deepseek v3.2", template: written(lookup("deepseek_v3_2", nil)), family: family.New("deepseek_v3_2"), more: `"thinking":true`, write: dsml("function_calls", ""), end: "<｜end▁of▁sentence｜>", breaks: "it has no variable"},
		{name: "deepseek v4", template: written(lookup("deepseek_v4", nil)), family: family.New("deepseek_v4"), more: `"thinking":true`, keep: `"drop_thinking":false`, write: dsml("tool_calls", ""), end: "<｜end▁of▁sentence｜>"},
		{name: "deepseek v4.1", template: written(lookup("deepseek_v41", nil)), family: family.New("deepseek_v41"), more: `"thinking":true`, keep: `"drop_thinking":false`, write: dsml("calls", " "), end: "<｜end▁of▁sentence｜>"},
		{name: "kimi k3", template: written(lookup("kimi_k3", nil)), family: family.New("kimi_k3"), end: "<|close|>message<|sep|><|end_of_msg|>",
			write: func(_, thought, text string, calls ...string) string {
				out := thought + "<|close|>think<|sep|><|open|>response<|sep|>" + text + "<|close|>response<|sep|>"
				if len(calls) == 0 {
					return out
				}
				out += "<|open|>tools<|sep|>"
				for i, x := range calls {
					out += fmt.Sprintf(`<|open|>call tool="f" index="%d"<|sep|><|open|>argument key="x" type="string"<|sep|>%s<|close|>argument<|sep|><|close|>call<|sep|>`, i+1, x)
				}
				return out + "<|close|>tools<|sep|>"
			}},
		{name: "gpt-oss library", template: written(lookup("harmony", variables{"style": "library", "sampled_calls": true})), family: family.New("harmony"),
			keep: `"auto_drop_analysis":false`, wordless: true, single: true, write: harmony},
		{name: "gpt-oss template", template: written(lookup("harmony", variables{"sampled_calls": true})), family: family.New("harmony"),
			keep: `"auto_drop_analysis":false`, wordless: true, single: true, write: harmony},
		{name: "qwen2.5", template: sharedTemplate("tok", "qwen2.5", "chat_template.jinja"), family: family.New("qwen25"), write: think, end: im, mute: true},
		{name: "kimi k2", template: sharedTemplate("tok", "kimi-k2", "chat_template.jinja"), family: family.New("kimi_k2"), end: "<|im_end|>", mute: true,
			write: func(_, _, text string, calls ...string) string {
				if len(calls) > 0 {
					text += "<|tool_calls_section_begin|>"
					for i, x := range calls {
						text += fmt.Sprintf(`<|tool_call_begin|>functions.f:%d<|tool_call_argument_begin|>{"x": "%s"}<|tool_call_end|>`, i, x)
					}
					text += "<|tool_calls_section_end|>"
				}
				return text
			}},
		{name: "phi-4", template: sharedTemplate("tok", "phi-4", "chat_template.jinja"), family: family.New("passthrough"), end: "<|im_end|>", mute: true, noTools: true,
			write: func(_, _, text string, _ ...string) string { return text }},
	}
}

// A run is a conversation with a model.
type run struct {
	t    *testing.T
	m    *model
	c    *client
	r    *prompt.Model
	more string

	last   string // the last prompt, the response to it and the end of its turn
	kept   map[int]bool
	broken int // prompts that did not begin with the previous one
}

// next renders the next prompt, compares it with the last one, and adds the model's response.
func (r *run) next(text string, calls ...string) {
	r.t.Helper()
	if r.m.noTools {
		calls = nil
	}
	if r.m.single && len(calls) > 1 {
		calls = calls[:1]
	}
	if r.m.wordless && len(calls) > 0 {
		text = ""
	}
	req := r.c.request(!r.m.noTools, r.more)
	p, err := r.r.Render(req, noon)
	require.NoError(r.t, err)
	r.checkGrowth(req, p)

	thought := fmt.Sprintf("Zqr%d.", r.c.answers)
	if r.m.mute {
		thought = ""
	}
	out := r.m.write(p.Text, thought, text, calls...)
	dec, err := r.r.NewDecoder(req, p, nil)
	require.NoError(r.t, err)
	var events []event.Event
	take := func(list []event.Event) {
		require.NoError(r.t, dec.Err())
		for _, e := range list {
			require.NotEqual(r.t, event.ToolAbort, e.Kind, "%v in %q", e, out)
			if e.Kind != event.Finish && e.Kind != event.Start && e.Kind != event.Usage {
				events = append(events, e.Clone())
			}
		}
	}
	take(dec.Append(nil, out))
	take(dec.Finish(nil))
	r.c.answer(events...)
	require.Len(r.t, r.c.ids, len(calls), "%q", out)
	r.last = p.Text + out + r.m.end
}

// checkGrowth checks that the prompt begins with the last one and its response, or differs first where reasoning was dropped
// or returned.
func (r *run) checkGrowth(req *block.Request, p *prompt.Prompt) {
	r.t.Helper()
	first, in, n := -1, "", 0 // the first response whose reasoning is in only one prompt, and that prompt
	now := map[int]bool{}
	for i, turn := range req.Turns() {
		if turn.Role != block.RoleAssistant {
			continue
		}
		now[n] = p.Outcomes[i] == replay.Kept
		was, old := r.kept[n]
		was = was || !old && p.Outcomes[i] != replay.None
		switch {
		case first >= 0 || was == now[n]:
		case was:
			first, in = n, r.last
		default: // harmony's library prints it again in the next chain
			first, in = n, p.Text
		}
		n++
	}
	r.kept = now
	if first < 0 {
		require.True(r.t, strings.HasPrefix(p.Text, r.last), "nothing was dropped, and yet the prompt breaks at %d of %d\n%q\n---\n%q", common(p.Text, r.last), len(r.last), r.last, p.Text)
		return
	}
	r.broken++
	at, word := common(p.Text, r.last), strings.Index(in, fmt.Sprintf("Zqr%d.", first))
	require.GreaterOrEqual(r.t, word, 0)
	require.LessOrEqual(r.t, at, word, "the reasoning is in both")
	const tags = len("<|start|>assistant<|channel|>analysis<|message|>")
	require.GreaterOrEqual(r.t, at, word-tags, "the prompt breaks before what was dropped:\n%q\n---\n%q", r.last[at:], p.Text[at:])
}

// common returns the length of the longest common prefix of a and b.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// results adds a result for each call of the last response, or a question if the model has no tools.
func (r *run) results(text, reminder string) {
	if r.m.noTools {
		r.c.user("Zq " + text)
		return
	}
	r.c.results(text, reminder)
}

// talk holds a conversation of three questions, with chains of calls, a reminder and a response without calls.
func (r *run) talk() {
	r.c.user("Zq the first question.")
	r.next("A look at both.", "1", "2")
	r.results("result ", "<system-reminder>Be quick.</system-reminder>")
	r.next("And another.", "3")
	r.results("more ", "")
	r.next("That is all.")
	r.c.user("Zq the second question.")
	r.next("Again.", "4")
	r.results("again ", "")
	r.next("Done.")
	r.c.user("Zq the third question.")
	r.next("Nothing.")
}

// TestPromptsGrow checks that each prompt of a conversation begins with the previous prompt and its response if the
// rule permits that. If a question drops reasoning, the prompts differ there. If the request keeps all reasoning, they
// do not differ.
func TestPromptsGrow(t *testing.T) {
	vars := func(list ...string) string {
		var set []string
		for _, v := range list {
			if v != "" {
				set = append(set, v)
			}
		}
		if len(set) == 0 {
			return ""
		}
		return `"chat_template_kwargs":{` + strings.Join(set, ",") + `}`
	}
	for i, m := range models() {
		for j, api := range apis {
			if testing.Short() && (i%3 != 0 || j != i/3%len(apis)) {
				continue
			}
			t.Run(m.name+"/"+api, func(t *testing.T) {
				renderer := familyModel(t, m.template(t), m.family)
				r := &run{t: t, m: &m, c: &client{t: t, api: api}, r: renderer, more: vars(m.more)}
				r.talk()
				caps := r.r.Capabilities()
				all := m.mute || printsAll(caps.Text("past_reasoning")) && !strings.Contains(m.more, "false")
				require.Equal(t, all, r.broken == 0, "%d breaks", r.broken)
				if m.keep == "" {
					return
				}
				kept := &run{t: t, m: &m, c: &client{t: t, api: api}, r: renderer, more: vars(m.more, m.keep)}
				kept.talk()
				require.Equal(t, m.breaks != "", kept.broken > 0, "requested to keep all, %d breaks", kept.broken)
				if api != "responses" || m.more != "" {
					return
				}
				// The API's own field has the same effect.
				requested := &run{t: t, m: &m, c: &client{t: t, api: api}, r: renderer, more: `"reasoning":{"context":"all_turns"}`}
				requested.talk()
				require.Equal(t, kept.last, requested.last)
			})
		}
	}
}

// TestPromptsGrowWithoutReasoning turns reasoning off: the prompt's empty block is kept during a chain of calls.
func TestPromptsGrowWithoutReasoning(t *testing.T) {
	for _, m := range models() {
		if !strings.HasPrefix(m.name, "qwen3") && !strings.HasPrefix(m.name, "nemotron") && !strings.HasPrefix(m.name, "ChatML") {
			continue
		}
		for i, api := range apis {
			if testing.Short() && i != len(m.name)%len(apis) {
				continue
			}
			t.Run(m.name+"/"+api, func(t *testing.T) {
				m.mute = true
				write := m.write
				m.write = func(prompt, _, text string, calls ...string) string {
					if strings.HasPrefix(m.name, "nemotron") {
						return text + "\n" + xmlCalls("", "\n", calls) + "\n"
					}
					return write(prompt, "", text, calls...)
				}
				more := `"chat_template_kwargs":{"enable_thinking":false}`
				r := &run{t: t, m: &m, c: &client{t: t, api: api}, r: newModel(t, m.template(t), m.family, prompt.Options{KeepEmpty: true}), more: more}
				r.c.user("Zq the first question.")
				r.next("A look at both.", "1", "2")
				r.results("result ", "<system-reminder>Be quick.</system-reminder>")
				r.next("And another.", "3")
				r.results("more ", "")
				r.next("Again.", "4")
				r.results("again ", "")
				p, err := r.r.Render(r.c.request(true, r.more), noon)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(p.Text, r.last), "%q\n---\n%q", r.last, p.Text)
			})
		}
	}
}

// printsAll reports whether a template prints all past reasoning of requests with tools, except for conversations that
// end with a response.
func printsAll(past string) bool {
	with, _, _ := strings.Cut(past, "; ")
	for clause := range strings.SplitSeq(past, "; ") {
		if tools, ok := strings.CutPrefix(clause, "tools: "); ok {
			with = tools
		}
	}
	return with != "" && !strings.ContainsAny(strings.TrimSuffix(with, " ua"), "ac")
}

// TestTurnsGrow holds conversations built with wire.Turn. Until a new question, each prompt begins with the previous
// prompt and the model's output, including the format of its arguments.
func TestTurnsGrow(t *testing.T) {
	for i, m := range models() {
		if testing.Short() && i%3 != 0 {
			continue
		}
		if m.noTools || strings.HasPrefix(m.name, "qwen3.8 narrow") {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			model := familyModel(t, m.template(t), m.family)
			conv, err := decode("chat", []byte(`{"model":"m","messages":[{"role":"user","content":"Zq question."}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}]`+
				map[bool]string{true: "", false: `,"chat_template_kwargs":{` + m.more + `}`}[m.more == ""]+`}`), nil)
			require.NoError(t, err)
			last := ""
			for n := range 4 {
				p, err := model.Render(conv, noon)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(p.Text, last), "%d: %q\n---\n%q", n, last, p.Text)
				thought, text := fmt.Sprintf("Zqr%d.", n), "A look."
				if m.mute {
					thought = ""
				}
				if m.wordless {
					text = ""
				}
				calls := []string{fmt.Sprint(n), "b"}
				if m.single {
					calls = calls[:1]
				}
				out := m.write(p.Text, thought, text, calls...)
				dec, err := model.NewDecoder(conv, p, nil)
				require.NoError(t, err)
				var answer event.Collector
				for _, b := range []byte(out) {
					answer.Add(dec.Append(nil, string([]byte{b}))...)
				}
				answer.Add(dec.Finish(nil)...)
				require.Equal(t, event.ToolCalls, answer.Answers[0].Finish)
				require.NoError(t, conv.Append(wire.Turn(&answer, 0)))
				var results []block.Block
				for _, c := range answer.Answers[0].Calls() {
					results = append(results, block.NewResult(c.ID, "Zq result"))
				}
				require.Len(t, results, len(calls))
				require.NoError(t, conv.Append(block.Turn{Role: block.RoleTool, Blocks: results}))
				last = p.Text + out + m.end
			}
		})
	}
}

// The prompts of gpt-oss have calls as the model wrote them: the order of the header and the bytes of the arguments.
func TestHarmonyCallsAreVerbatim(t *testing.T) {
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": tokenizerJSON("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", "<|return|>")}, nil)
	require.NoError(t, err)
	require.Equal(t, "harmony", m.Family())
	for _, args := range []string{`{"x":"1"}`, `{"x": "1"}`, `{ "y":1.50 , "x" : [ ] }`} {
		for api, body := range map[string]string{
			"chat":     `{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":` + fmt.Sprintf("%q", args) + `}}]},{"role":"tool","tool_call_id":"1","content":"r"}]}`,
			"messages": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":` + args + `}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]}]}`,
		} {
			req, err := decode(api, []byte(body), nil)
			require.NoError(t, err)
			p, err := m.Render(req, noon)
			require.NoError(t, err)
			require.Contains(t, p.Text, "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"+args+"<|call|>", api)
		}
	}
}
