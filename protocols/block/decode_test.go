// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
)

// dump formats the turns of a request, one per line.
func dump(r *block.Request) string {
	var b strings.Builder
	var put func(list []block.Block)
	put = func(list []block.Block) {
		for _, x := range list {
			fmt.Fprintf(&b, " %v", x.Kind)
			for _, f := range []struct{ k, v string }{
				{"", x.Text}, {"sig=", x.Signature}, {"enc=", x.Encrypted}, {"#", x.CallID}, {"", x.Namespace}, {"@", x.Name}, {"args=", x.Args},
			} {
				if f.v != "" {
					fmt.Fprintf(&b, " %s%q", f.k, f.v)
				}
			}
			for k, on := range map[string]bool{"summary": x.Summary} {
				if on {
					b.WriteString(" " + k)
				}
			}
			if x.IsError {
				b.WriteString(" error")
			}
			if x.Custom {
				b.WriteString(" custom")
			}
			if x.Server {
				b.WriteString(" server")
			}
			if x.Redacted {
				b.WriteString(" redacted")
			}
			if x.Media != nil {
				fmt.Fprintf(&b, " %v", *x.Media)
			}
			if x.Cache != nil {
				fmt.Fprintf(&b, " cache%v", *x.Cache)
			}
			if x.Content != nil {
				b.WriteString(" [")
				put(x.Content)
				b.WriteString(" ]")
			}
			b.WriteByte(';')
		}
	}
	for _, t := range r.Turns() {
		fmt.Fprintf(&b, "%v/%v:", t.Role, t.Kind)
		put(t.Blocks)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTurns(t *testing.T) {
	want := []string{
		`developer/other: text "Be brief.";
user/turn_start: text "List \"files\""; image {image/png  aGk=   }; unknown; text "bare";
assistant/other: reasoning "I should\nlist."; text "Sure. 😀"; tool_call #"c1" @"ls" args="{ \"p\": 1.0 }"; tool_call #"c2" @"cat" args="{broken";
tool/tool_continuation: tool_result #"c2" [ text "no such"; ];
tool/tool_continuation: tool_result #"c1" [ text "a.txt"; ];
user/tool_continuation: text "<system-reminder>be quick</system-reminder>";
`,
		`system/other: text "Be brief.";
user/turn_start: text "List \"files\"";
assistant/other: reasoning "I should\nlist." enc="b3Bh" summary; text "Sure. 😀"; tool_call #"c1" @"ls" args="{ \"p\": 1.0 }"; tool_call #"c2" @"patch" args="*** Begin\n" custom; server_item server;
tool/tool_continuation: tool_result #"c2" custom [ text "done"; image { https://x/y.png    }; ]; tool_result #"c1" [ text "a.txt"; ];
user/tool_continuation: text "<system-reminder>be quick</system-reminder>";
user/turn_start: text "bare";
unknown/other: unknown;
`,
		`system/other: text "Be brief." cache{ephemeral 1h }; text "And kind.";
user/turn_start: text "List \"files\""; image {image/png  aGk=   };
system/other: text "# Environment\ncwd=/";
assistant/other: reasoning "I should\nlist." sig="c2ln"; reasoning enc="cmVk" redacted; text "Sure. 😀"; tool_call #"c1" @"ls" args="{ \"p\": 1.0 , \"q\":\"\\u0061\"}"; tool_call #"c2" @"cat" args="{}";
user/tool_continuation: tool_result #"c2" error [ text "no such"; tool_reference @"deep"; ]; tool_result #"c1" cache{ephemeral  } [ text "a.txt"; ]; text "<system-reminder>be quick</system-reminder>"; unknown; text "bare";
assistant/other: text "Done.";
user/turn_start: text "Thanks é";
`,
	}
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			r := decoded(t, i)
			if diff := cmp.Diff(want[i], dump(r)); diff != "" {
				t.Error(diff)
			}
			require.Equal(t, a.api, r.API())
			require.Equal(t, "m1", r.Params().Model)
			require.True(t, r.Params().Stream)
			require.EqualValues(t, 1000, *r.Params().MaxTokens)
			require.Equal(t, 1.0, *r.Params().Sampling.Temperature)
		})
	}
}

func TestTools(t *testing.T) {
	var got []string
	for _, x := range decoded(t, 1).Tools() {
		got = append(got, fmt.Sprintf("%d %s.%s→%s %s", x.Kind, x.Namespace, x.Name, x.ModelName, x.Schema))
	}
	want := []string{
		`0 .ls→ls {"type":"object"}`, `1 .patch→patch `, `0 agents.spawn→spawn {}`, `0 agents.ls→agents__ls `, `2 .→ `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	tool, ok := decoded(t, 1).Tool("", "agents__ls")
	require.True(t, ok)
	require.Equal(t, "agents", tool.Namespace)
	tool, ok = decoded(t, 1).Tool("agents", "ls")
	require.True(t, ok)
	require.Equal(t, "agents__ls", tool.ModelName)
	_, ok = decoded(t, 1).Tool("zz", "other")
	require.False(t, ok)
	require.Len(t, decoded(t, 2).Tools(), 3)
	require.True(t, decoded(t, 2).Tools()[1].Deferred)
	require.Equal(t, block.Hosted, decoded(t, 2).Tools()[2].Kind)
}

func TestParams(t *testing.T) {
	f, n, yes := func(x float64) *float64 { return &x }, func(x int64) *int64 { return &x }, true
	tests := []struct {
		name string
		api  int
		body string
		want block.Params
	}{
		{
			"chat", 0,
			`{"messages":[],"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":5,"max_tokens":9,
			"temperature":0,"top_p":0.5,"min_p":0.1,"top_k":3,"seed":-7,"n":2,"frequency_penalty":1,"presence_penalty":-1,
			"repetition_penalty":1.1,"stop":["a",17],"stop_token_ids":[18],"ignore_eos":true,"logprobs":true,"top_logprobs":2,
			"reasoning_effort":"high","thinking":{"type":"disabled"},"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"a": 1},"strict":true}},
			"verbosity":"low","user":"u","prompt_cache_key":"k","service_tier":"flex","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"f"}}}`,
			block.Params{
				Model: "m", Stream: true, StreamUsage: true, MaxTokens: n(5),
				Sampling: block.Sampling{
					Temperature: f(0), TopP: f(0.5), MinP: f(0.1), TopK: n(3), Seed: n(-7), N: n(2), FrequencyPenalty: f(1),
					PresencePenalty: f(-1), RepetitionPenalty: f(1.1), Stop: []string{"a"}, StopTokens: []int64{17, 18},
					IgnoreEOS: true, Logprobs: true, TopLogprobs: n(2),
				},
				Thinking:  block.Thinking{Mode: block.ThinkingOff, Effort: "high"},
				Format:    block.Format{Type: "json_schema", Name: "x", Schema: []byte(`{"a": 1}`), Strict: &yes},
				Verbosity: "low", User: "u", CacheKey: "k", ServiceTier: "flex",
				ToolChoice: block.ToolChoice{Mode: block.Required, Allow: []string{"f"}, Serial: true},
			},
		},
		{
			"chat allowed tools", 0,
			`{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"a"}},{"type":"custom","custom":{"name":"b"}}]}},"stop":null}`,
			block.Params{ToolChoice: block.ToolChoice{Mode: block.Required, Allow: []string{"a", "b"}}},
		},
		{
			"responses", 1,
			`{"model":"m","max_output_tokens":5,"top_p":1,"top_logprobs":4,"reasoning":{"effort":"low","summary":"auto"},
			"text":{"verbosity":"high","format":{"type":"json_schema","name":"x","schema":{}}},"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"prompt_cache_key":"k"}`,
			block.Params{
				Model: "m", MaxTokens: n(5), Sampling: block.Sampling{TopP: f(1), TopLogprobs: n(4)},
				Thinking: block.Thinking{Effort: "low", Summary: "auto"}, Verbosity: "high", CacheKey: "k",
				Format:     block.Format{Type: "json_schema", Name: "x", Schema: []byte(`{}`)},
				ToolChoice: block.ToolChoice{Mode: block.Auto, Serial: true},
			},
		},
		{
			"messages", 2,
			`{"messages":[],"model":"m","max_tokens":5,"top_k":2,"stop_sequences":["x","y"],"metadata":{"user_id":"u"},"service_tier":"auto",
			"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"max","format":{"type":"json_schema","schema":{}}},"tool_choice":{"type":"any","disable_parallel_tool_use":true}}`,
			block.Params{
				Model: "m", MaxTokens: n(5), Sampling: block.Sampling{TopK: n(2), Stop: []string{"x", "y"}}, User: "u",
				ServiceTier: "auto", Thinking: block.Thinking{Mode: block.ThinkingOn, Effort: "max", Budget: n(1024)},
				Format:     block.Format{Type: "json_schema", Schema: []byte(`{}`)},
				ToolChoice: block.ToolChoice{Mode: block.Required, Serial: true},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := apis[tt.api]
			r, err := a.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, r.Params()); diff != "" {
				t.Error(diff)
			}
			// The same parameters, encoded from a built request, decode to the same values.
			b := block.NewRequest()
			require.NoError(t, b.SetParams(r.Params()))
			out, losses, err := a.encode(nil, b, nil)
			require.NoError(t, err)
			require.Empty(t, losses)
			again, err := a.decode(out, nil)
			require.NoError(t, err, "%s", out)
			if tt.want.Model != "" {
				if diff := cmp.Diff(tt.want, again.Params()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestDecodeFaults(t *testing.T) {
	all := []int{0, 1, 2}
	tests := []struct {
		name string
		apis []int
		body string
		kind block.ErrorKind
		path string
		off  int64
	}{
		{"empty", all, ``, block.Malformed, "", 0},
		{"cut", all, `{"model":"m`, block.Malformed, "model", 11},
		{"not an object", all, ` []`, block.WrongType, "", 1},
		{"invalid UTF-8", all, "{\"model\":\"\xff\"}", block.Malformed, "model", 10},
		{"duplicate", all, `{"model":"a","model":"b"}`, block.Malformed, "model", 13},
		{"depth", all, `{"x":` + strings.Repeat(`[`, 200), block.LimitPassed, "x" + strings.Repeat("[0]", 127), 132},
		{"model", all, `{"model":5,"messages":[],"input":[]}`, block.WrongType, "model", 9},
		{"stream", all, `{"stream":"yes","messages":[],"input":[]}`, block.WrongType, "stream", 10},
		{"temperature", all, `{"temperature":"1","messages":[],"input":[]}`, block.WrongType, "temperature", 15},
		{"stop", []int{0}, `{"stop":["a",1,null],"messages":[]}`, block.WrongType, "stop[2]", 15},
		{"fraction in stop", []int{0}, `{"stop":[1.5],"messages":[]}`, block.WrongType, "stop[0]", 9},
		{"stop_token_ids", []int{0}, `{"stop_token_ids":[1,"2"],"messages":[]}`, block.WrongType, "stop_token_ids[1]", 21},
		{"stop_sequences", []int{2}, `{"stop_sequences":["a",1],"messages":[]}`, block.WrongType, "stop_sequences[1]", 23},
		{"tools", all, `{"tools":{},"messages":[],"input":[]}`, block.WrongType, "tools", 9},
		{"tool", all, `{"tools":[1],"messages":[],"input":[]}`, block.WrongType, "tools[0]", 10},
		{"no messages", []int{0, 2}, `{"model":"m"}`, block.WrongType, "messages", 0},
		{"messages", []int{0, 2}, `{"messages":"hi"}`, block.WrongType, "messages", 12},
		{"message", []int{0, 2}, `{"messages":[[]]}`, block.WrongType, "messages[0]", 13},
		{"no role", []int{0, 2}, `{"messages":[{"content":"x"}]}`, block.WrongType, "messages[0].role", 13},
		{"content", []int{0, 2}, `{"messages":[{"role":"user","content":5}]}`, block.WrongType, "messages[0].content", 38},
		{"part", []int{0, 2}, `{"messages":[{"role":"user","content":[5]}]}`, block.WrongType, "messages[0].content[0]", 39},
		{"text", []int{0, 2}, `{"messages":[{"role":"user","content":[{"type":"text","text":[]}]}]}`, block.WrongType, "messages[0].content[0].text", 61},
		{"input", []int{1}, `{"input":5}`, block.WrongType, "input", 9},
		{"item", []int{1}, `{"input":[5]}`, block.WrongType, "input[0]", 10},
		{"item without role", []int{1}, `{"input":[{"type":"message"}]}`, block.WrongType, "input[0].role", 10},
	}
	for _, tt := range tests {
		for _, i := range tt.apis {
			t.Run(tt.name+"/"+apis[i].api.String(), func(t *testing.T) {
				_, err := apis[i].decode([]byte(tt.body), nil)
				be, ok := errors.AsType[*block.Error](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, tt.kind, be.Kind, be.Error())
				require.Equal(t, tt.path, be.Path, be.Error())
				require.Equal(t, tt.off, be.Offset, be.Error())
			})
		}
	}
}

// A number that no float64 can hold is a number all the same.
func TestNumberOutOfRangeIsNamedSo(t *testing.T) {
	for _, number := range []string{"1e999", "-1e999", "9" + strings.Repeat("0", 400)} {
		for _, a := range apis {
			_, err := a.decode([]byte(`{"model":"m","temperature":`+number+`,"messages":[],"input":[]}`), nil)
			require.EqualError(t, err, "temperature: the number is out of range at byte 27")
		}
	}
}

func TestLimits(t *testing.T) {
	part, item := `{"type":"text","text":"x"}`, `{"role":"user","content":"x"}`
	tests := []struct {
		name string
		api  int
		body string
		lim  block.Limits
		path string
	}{
		{"body bytes", 0, `{"messages":[]}`, block.Limits{Body: 10}, ""},
		{"depth", 0, `{"messages":[]}`, block.Limits{Depth: 1}, "messages"},
		{"values", 0, `{"messages":[],"x":[1,2,3]}`, block.Limits{Values: 4}, "x[1]"},
		{"blocks", 0, `{"messages":[{"role":"user","content":[` + part + `,` + part + `]}]}`, block.Limits{Blocks: 1}, "messages[0].content"},
		{"blocks", 1, `{"input":[` + item + `,` + item + `]}`, block.Limits{Blocks: 1}, "input[1].content"},
		{"blocks", 2, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[` + part + `]}]}]}`, block.Limits{Blocks: 1}, "messages[0].content[0].content"},
		{"tools", 1, `{"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]}]}`, block.Limits{Tools: 1}, "tools[0].tools"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := apis[tt.api].decode([]byte(tt.body), &tt.lim)
			be, ok := errors.AsType[*block.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, block.LimitPassed, be.Kind)
			require.Equal(t, tt.name, be.Limit)
			require.Equal(t, tt.path, be.Path)
		})
	}
	if testing.Short() {
		return
	}
	// The default limit is 64 MiB.
	big := []byte(`{"messages":[],"x":"` + strings.Repeat("a", 64<<20) + `"}`)
	_, err := apis[0].decode(big, nil)
	be, ok := errors.AsType[*block.Error](err)
	require.True(t, ok)
	require.EqualValues(t, 64<<20, be.Max)
}

// TestTurnKinds checks where the work on a question starts, and that reminders do not start it again.
func TestTurnKinds(t *testing.T) {
	const (
		result = `{"type":"tool_result","tool_use_id":"c","content":"r"}`
		remind = `{"type":"text","text":" <system-reminder>x</system-reminder>\n"}`
		ask    = `{"type":"text","text":"do it"}`
	)
	user := func(parts ...string) string { return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}` }
	const assistant, system = `{"role":"assistant","content":"ok"}`, `{"role":"system","content":"s"}`
	tests := []struct{ turns, want string }{
		{user(ask), "turn_start"},
		{user(remind, ask), "turn_start"},
		{user(remind) + "," + user(ask), "other turn_start"},
		{user(ask) + "," + user(remind), "turn_start other"},
		{user(ask) + "," + assistant + "," + user(result), "turn_start other tool_continuation"},
		{user(ask) + "," + assistant + "," + user(result, remind), "turn_start other tool_continuation"},
		{user(ask) + "," + assistant + "," + user(result) + "," + user(remind), "turn_start other tool_continuation tool_continuation"},
		{user(ask) + "," + assistant + "," + user(result) + "," + system + "," + user(remind), "turn_start other tool_continuation other tool_continuation"},
		{user(ask) + "," + assistant + "," + user(result) + "," + user(ask), "turn_start other tool_continuation turn_start"},
		{user(ask) + "," + assistant + "," + user(remind), "turn_start other other"},
	}
	for _, tt := range tests {
		r, err := apis[2].decode([]byte(`{"messages":[`+tt.turns+`]}`), nil)
		require.NoError(t, err)
		var kinds []string
		for _, x := range r.Turns() {
			kinds = append(kinds, x.Kind.String())
		}
		require.Equal(t, tt.want, strings.Join(kinds, " "))
	}
}

func fuzzDecode(f *testing.F, i int) {
	for _, b := range bodies {
		f.Add([]byte(b))
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":"\ud800"}],"input":"x"}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"0","cache_control":{}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := apis[i].decode([]byte(string(body)), nil)
		if err != nil {
			if _, ok := errors.AsType[*block.Error](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		out, err := r.AppendBody(nil)
		if err != nil || string(out) != string(body) {
			t.Fatalf("%v: %q became %q", err, body, out)
		}
		for _, a := range apis {
			out, _, err := a.encode(nil, r, nil)
			if err != nil || !json.Valid(out) {
				t.Fatalf("%v %s: %s", a.api, err, out)
			}
			if _, err := a.decode(out, nil); err != nil && !nameless(a.api, err) {
				if be, ok := errors.AsType[*block.Error](err); !ok || be.Kind != block.LimitPassed {
					t.Fatalf("%v: %v in %s", a.api, err, out)
				}
			}
		}
		var whole any
		if json.Unmarshal(body, &whole) == nil { // it rejects numbers that no float64 can represent
			d, err := detached(apis[i], body)
			if err != nil {
				t.Fatal(err)
			}
			out, err := d.AppendBody(nil)
			if err != nil {
				t.Fatal(err)
			}
			if same, diff := equalJSON(body, out); !same {
				t.Fatalf("detached: %s\n%s\n%s", body, out, diff)
			}
		}
		for _, a := range apis {
			checkBack(t, apis[i], a, r)
		}
		for _, b := range blocksOf(r) {
			if b.Text != "" {
				if err := r.SetText(b.At, b.Text+"!"); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		if out, err = r.AppendBody(nil); err != nil || !json.Valid(out) {
			t.Fatalf("%v after an edit: %s", err, out)
		}
	})
}

func FuzzChat(f *testing.F)      { fuzzDecode(f, 0) }
func FuzzResponses(f *testing.F) { fuzzDecode(f, 1) }
func FuzzMessages(f *testing.F)  { fuzzDecode(f, 2) }

// TestRequired decodes blocks of the Messages API without a field that they must have.
func TestRequired(t *testing.T) {
	for name, tt := range map[string]struct{ block, path string }{
		"call without id":   {`{"type":"tool_use","name":"f","input":{}}`, "messages[0].content[0].id"},
		"call with null id": {`{"type":"tool_use","id":null,"name":"f","input":{}}`, "messages[0].content[0].id"},
		"call without name": {`{"type":"tool_use","id":"c","input":{}}`, "messages[0].content[0].name"},
		"result without id": {`{"type":"tool_result","content":"x"}`, "messages[0].content[0].tool_use_id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apis[2].decode([]byte(`{"max_tokens":1,"messages":[{"role":"user","content":[`+tt.block+`]}]}`), nil)
			be, ok := errors.AsType[*block.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, block.WrongType, be.Kind)
			require.Equal(t, tt.path, be.Path)
		})
	}
}
