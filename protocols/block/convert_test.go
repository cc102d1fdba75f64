// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// built returns a request with all features that the three APIs share.
func built(t testing.TB) *block.Request {
	r := block.NewRequest()
	limit, temp := int64(100), 0.5
	require.NoError(t, r.SetParams(block.Params{
		Model: "m", Stream: true, MaxTokens: &limit, Sampling: block.Sampling{Temperature: &temp},
		ToolChoice: block.ToolChoice{Mode: block.Required, Allow: []string{"ls"}, Serial: true},
	}))
	require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "ls", Description: "List.", Schema: []byte(`{"type":"object"}`)})...))
	for _, x := range []block.Turn{
		{Role: block.RoleSystem, Blocks: text("Be brief.")},
		{Role: block.RoleUser, Blocks: []block.Block{
			{Kind: block.Text, Text: "What is \"here\"?\n"}, {Kind: block.Image, Media: &block.Media{MIME: "image/png", Data: "aGk="}},
		}},
		{Role: block.RoleAssistant, Blocks: []block.Block{
			{Kind: block.Reasoning, Text: "Look."}, {Kind: block.Text, Text: "A moment."},
			{Kind: block.ToolCall, CallID: "c1", Name: "ls", Args: `{"p": 1.0}`}, {Kind: block.ToolCall, CallID: "c2", Name: "ls", Args: `{}`},
		}},
		{Role: block.RoleTool, Blocks: []block.Block{{Kind: block.ToolResult, CallID: "c1", Content: text("a")}}},
		{Role: block.RoleTool, Blocks: []block.Block{{Kind: block.ToolResult, CallID: "c2", Content: text("b")}}},
	} {
		require.NoError(t, r.Append(x))
	}
	return r
}

func TestBuiltRequestEncodes(t *testing.T) {
	want := []string{
		`{"model":"m","max_completion_tokens":100,"stream":true,"temperature":0.5,"tool_choice":{"type":"function","function":{"name":"ls"}},"parallel_tool_calls":false,` +
			`"tools":[{"type":"function","function":{"name":"ls","description":"List.","parameters":{"type":"object"}}}],"messages":[` +
			`{"role":"system","content":"Be brief."},` +
			`{"role":"user","content":[{"type":"text","text":"What is \"here\"?\n"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},` +
			`{"role":"assistant","content":"A moment.","reasoning_content":"Look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"p\": 1.0}"}},{"id":"c2","type":"function","function":{"name":"ls","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"a"},{"role":"tool","tool_call_id":"c2","content":"b"}]}`,
		`{"model":"m","max_output_tokens":100,"stream":true,"temperature":0.5,"tool_choice":{"type":"function","name":"ls"},"parallel_tool_calls":false,` +
			`"tools":[{"type":"function","name":"ls","description":"List.","parameters":{"type":"object"},"strict":false}],"input":[` +
			`{"type":"message","role":"system","content":[{"type":"input_text","text":"Be brief."}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"What is \"here\"?\n"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},` +
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Look."}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A moment."}]},` +
			`{"type":"function_call","call_id":"c1","name":"ls","arguments":"{\"p\": 1.0}"},{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c1","output":"a"},{"type":"function_call_output","call_id":"c2","output":"b"}]}`,
		`{"model":"m","max_tokens":100,"stream":true,"temperature":0.5,"tool_choice":{"type":"tool","name":"ls","disable_parallel_tool_use":true},` +
			`"tools":[{"name":"ls","description":"List.","input_schema":{"type":"object"}}],"system":"Be brief.","messages":[` +
			`{"role":"user","content":[{"type":"text","text":"What is \"here\"?\n"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"Look.","signature":""},{"type":"text","text":"A moment."},{"type":"tool_use","id":"c1","name":"ls","input":{"p": 1.0}},{"type":"tool_use","id":"c2","name":"ls","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"},{"type":"tool_result","tool_use_id":"c2","content":"b"}]}]}`,
	}
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			r := built(t)
			_, err := r.AppendBody(nil)
			require.Error(t, err, "a built request has no API")
			out, losses, err := a.encode(nil, r, &block.EncodeOptions{Strict: true})
			require.NoError(t, err)
			require.Empty(t, losses)
			if diff := cmp.Diff(want[i], string(out)); diff != "" {
				t.Error(diff)
			}
			back, err := a.decode(out, nil)
			require.NoError(t, err)
			require.Equal(t, r.Params(), back.Params())
			if a.api == block.Chat { // one message per turn in this request
				require.True(t, back.Equal(r))
			}
			for _, b := range apis { // and from there to the others
				again, _, err := b.encode(nil, back, nil)
				require.NoError(t, err)
				third, err := b.decode(again, nil)
				require.NoError(t, err)
				m1, _ := chat.AppendMessages(nil, r, nil)
				m2, _ := chat.AppendMessages(nil, third, nil)
				require.Equal(t, string(m1), string(m2), "%v by way of %v", b.api, a.api)
			}
		})
	}
}

// TestBuiltRejectsInvalidJSON checks that invalid raw JSON is rejected by the edit that adds it: a built request is never parsed
// again.
func TestBuiltRejectsInvalidJSON(t *testing.T) {
	r := block.NewRequest()
	bad := []byte("{nope")
	require.Error(t, r.SetTools(append(r.Tools(), block.Tool{Name: "f", Schema: bad})...))
	require.Error(t, r.SetTools(append(r.Tools(), block.Tool{Name: "f", Kind: block.CustomTool, Format: bad})...))
	require.Error(t, r.SetParams(block.Params{Format: block.Format{Type: "json_schema", Schema: bad}}))
	require.Error(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Unknown, JSON: bad}}}))
	require.Error(t, r.Append(block.Turn{Role: block.RoleTool, Blocks: []block.Block{{Kind: block.ToolResult, Content: []block.Block{{Kind: block.Unknown, JSON: bad}}}}}))
	require.Empty(t, r.Turns())
}

func TestBuiltEdits(t *testing.T) {
	r := built(t)
	at := r.Turns()[1].Blocks[0].At
	require.NoError(t, r.SetText(at, "Where?"))
	require.NoError(t, r.Insert(at, text("Hello.")...))
	require.NoError(t, r.Delete(r.Turns()[1].Blocks[2].At))
	require.NoError(t, r.Delete(r.Turns()[0].At))
	require.NoError(t, r.SetTools(slices.Delete(slices.Clone(r.Tools()), 0, 1)...))
	require.NoError(t, r.SetText(r.Turns()[2].Blocks[0].Content[0].At, "z"))
	require.Equal(t, "Hello. Where?", r.Turns()[0].Text(" "))
	require.Equal(t, block.TurnStart, r.Turns()[0].Kind)
	require.Equal(t, "z", codec.JoinText(r.Turns()[2].Blocks[0].Content, ""))
	require.Empty(t, r.Tools())
	require.True(t, built(t).Equal(built(t)))
	require.False(t, r.Equal(built(t)))
}

func TestLosses(t *testing.T) {
	tests := []struct {
		name   string
		from   int
		to     int
		body   string
		losses []string
	}{
		{
			"chat to messages", 0, 2,
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{broken"}}]},{"role":"tool","tool_call_id":"functions.f:0","content":"r"},{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x","format":"wav"}}]}],"n":2,"seed":1,"logit_bias":{"1":2},"max_tokens":1}`,
			[]string{
				"logit_bias: no counterpart in the other API", "n: no field in the Messages API: n", "seed: no field in the Messages API: seed",
				"messages[3].content[0]: media that the Messages API cannot carry: audio",
			},
		},
		{
			"messages to chat", 2, 0,
			`{"model":"m","max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"},{"type":"thinking","thinking":"t","signature":"s"}]},{"role":"user","content":[{"type":"text","text":"u","cache_control":{"type":"ephemeral"}},{"type":"mystery"}]}],"context_management":{"edits":[1]},"tools":[{"type":"bash_20250124","name":"bash"}]}`,
			[]string{
				"context_management: no counterpart in the other API", "tools[0]: a tool that another API runs: bash_20250124",
				"messages[1].content[1]: a block of another API: mystery",
			},
		},
		{
			"responses to messages", 1, 2,
			`{"model":"m","max_output_tokens":5,"previous_response_id":"r","input":[{"type":"custom_tool_call","call_id":"c","name":"p","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":"y"},{"type":"item_reference","id":"i"},{"type":"web_search_call"},{"type":"reasoning","content":[{"type":"reasoning_text","text":"r"}],"summary":[{"type":"summary_text","text":"s"}]}],"tools":[{"type":"custom","name":"p"}]}`,
			[]string{
				"previous_response_id: no counterpart in the other API", "input[4].summary: a summary in addition to the reasoning",
				"input[2]: a turn of an unknown role", "input[3]: a block of another API: web_search_call",
			},
		},
		{
			"messages to responses", 2, 1,
			`{"model":"m","max_tokens":5,"top_k":3,"stop_sequences":["x"],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"r","citations":[1]}]}]}]}`,
			[]string{
				"messages[0].content[0].content[0].citations: no counterpart in the other API",
				"stop_sequences: no field in the Responses API: stop", "top_k: no field in the Responses API: top_k",
				"messages[0].content[0]: the mark of a failed tool",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := apis[tt.from].decode([]byte(tt.body), nil)
			require.NoError(t, err)
			out, losses, err := apis[tt.to].encode(nil, r, nil)
			require.NoError(t, err)
			var got []string
			for _, l := range losses {
				got = append(got, l.String())
			}
			if diff := cmp.Diff(tt.losses, got); diff != "" {
				t.Error(diff)
			}
			_, err = apis[tt.to].decode(out, nil)
			require.NoError(t, err)
			_, _, err = apis[tt.to].encode(nil, r, &block.EncodeOptions{Strict: true})
			e, ok := errors.AsType[*block.Error](err)
			require.True(t, ok)
			require.Equal(t, block.Unsupported, e.Kind)
			require.Equal(t, got[0], err.Error())
		})
	}
}

// Losses of parameters have the paths that they have in the request.
func TestLossesNameThePathsOfTheRequest(t *testing.T) {
	for _, tt := range []struct {
		from, to int
		engine   string
		fields   string
		paths    []string
	}{
		{1, 2, "", `"text":{"verbosity":"low"}`, []string{"text.verbosity"}},
		{1, 2, "", `"reasoning":{"effort":"minimal","summary":"auto"}`, []string{"reasoning.effort", "reasoning.summary"}},
		{1, 2, "", `"reasoning":{"generate_summary":"auto"}`, []string{"reasoning.generate_summary"}},
		{1, 2, "", `"top_logprobs":3`, []string{"top_logprobs"}},
		{1, 2, "", `"text":{"format":{"type":"json_object"}}`, []string{"text.format"}},
		{1, 0, "", `"top_logprobs":3`, []string{"top_logprobs"}},
		{1, 0, "", `"top_logprobs":0`, nil},
		{1, 0, "vllm", `"reasoning":{"effort":"ultra"}`, []string{"reasoning.effort"}},
		{0, 2, "", `"verbosity":"low","reasoning_effort":"minimal","response_format":{"type":"json_object"}`, []string{"reasoning_effort", "verbosity", "response_format"}},
		{0, 2, "", `"logprobs":true,"top_logprobs":2`, []string{"logprobs", "top_logprobs"}},
		{0, 1, "", `"stop":"x"`, []string{"stop"}},
		{2, 1, "", `"stop_sequences":["x"]`, []string{"stop_sequences"}},
		{2, 0, "vllm", `"output_config":{"effort":"ultra"}`, []string{"output_config.effort"}},
		{2, 0, "ollama", `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, []string{"tool_choice.disable_parallel_tool_use"}},
	} {
		turns := `"max_tokens":9,"messages":[{"role":"user","content":"x"}]`
		if tt.from == 1 {
			turns = `"max_output_tokens":9,"input":"x"`
		}
		r, err := apis[tt.from].decode([]byte(`{"model":"m",`+turns+`,`+tt.fields+`}`), nil)
		require.NoError(t, err)
		out, losses, err := apis[tt.to].encode(nil, r, &block.EncodeOptions{Engine: tt.engine})
		require.NoError(t, err)
		var got []string
		for _, l := range losses {
			got = append(got, l.Path)
		}
		require.Equal(t, tt.paths, got, tt.fields)
		require.NotContains(t, string(out), "top_logprobs", "the Chat API refuses it without logprobs")
	}
}

// TestCallIDs checks that an ID that the Messages API forbids survives a conversion there and back.
func TestCallIDs(t *testing.T) {
	r, err := chat.Decode([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"functions.f:0","content":"r"}]}`), nil)
	require.NoError(t, err)
	out, _, err := messages.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.NotContains(t, string(out), "functions.f:0")
	back, err := messages.Decode(out, nil)
	require.NoError(t, err)
	require.Equal(t, "functions.f:0", back.Turns()[0].Blocks[0].CallID)
	require.Equal(t, "functions.f:0", back.Turns()[1].Blocks[0].CallID)
}

func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	body := []byte(messagesBody)
	r, err := messages.Decode(body, nil)
	require.NoError(t, err)
	dst := make([]byte, 0, 2*len(body))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := r.AppendBody(dst); err != nil {
			t.Fatal(err)
		}
	}), "encoding an unedited request is one copy")
	decodes := testing.AllocsPerRun(100, func() {
		if _, err := messages.Decode(body, nil); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, decodes, 50.0, "each turn and its blocks have memory of their own")
}

// A request is read, edited and encoded in the same API; only the edited text changes.
func Example() {
	body := []byte(`{"model":"m", "messages":[ {"role":"user", "content":[{"type":"text", "text":"Hi", "x_mine":1.50}]} ], "max_tokens":9}`)
	r, err := messages.Decode(body, nil)
	if err != nil {
		panic(err)
	}
	if err := r.SetText(r.Turns()[0].Blocks[0].At, "Hello"); err != nil {
		panic(err)
	}
	out, _ := r.AppendBody(nil)
	fmt.Println(string(out))
	out, losses, _ := chat.AppendRequest(nil, r, nil)
	fmt.Println(string(out), losses)
	// Output:
	// {"model":"m", "messages":[ {"role":"user", "content":[{"type":"text", "text":"Hello", "x_mine":1.50}]} ], "max_tokens":9}
	// {"model":"m","max_completion_tokens":9,"messages":[{"role":"user","content":"Hello"}]} [messages[0].content[0].x_mine: no counterpart in the other API]
}

// TestNamespaces checks that a built request has its namespaces in the Responses API.
func TestNamespaces(t *testing.T) {
	r := block.NewRequest()
	require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "ls", Schema: []byte(`{}`)})...))
	for _, name := range []string{"spawn", "wait"} {
		require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: name, Namespace: "agents", Schema: []byte(`{}`)})...))
	}
	out, losses, err := responses.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Empty(t, losses)
	back, err := responses.Decode(out, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"", "agents", "agents"}, []string{back.Tools()[0].Namespace, back.Tools()[1].Namespace, back.Tools()[2].Namespace})
	_, losses, err = messages.AppendRequest(nil, back, nil)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(losses), "tools[1].tools[0]: the tool's namespace")
}

func ExampleNewRequest_encode() {
	r := block.NewRequest()
	_ = r.SetParams(block.Params{Model: "m"})
	_ = r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: "Hi"}}})
	for _, encode := range []func([]byte, *block.Request, *block.EncodeOptions) ([]byte, []block.Loss, error){chat.AppendRequest, responses.AppendRequest, messages.AppendRequest} {
		out, losses, _ := encode(nil, r, nil)
		fmt.Println(string(out), losses)
	}
	// Output:
	// {"model":"m","messages":[{"role":"user","content":"Hi"}]} []
	// {"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}]} []
	// {"model":"m","max_tokens":8192,"messages":[{"role":"user","content":"Hi"}]} [max_tokens: the Messages API requires max_tokens; the default was set]
}

// A cache breakpoint after a file is carried over like those after other parts.
func TestBreakpointsAfterFiles(t *testing.T) {
	const mark = `"prompt_cache_breakpoint":{"mode":"explicit"}`
	ttl := []block.Loss{{Path: "messages[0].content[0]", Why: "the time to live of a cache breakpoint"}}
	for _, source := range []string{
		`"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="}`, `"type":"document","source":{"type":"file","file_id":"f"}`,
		`"type":"container_upload","file_id":"f"`,
	} {
		body := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{` + source + `,"cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`
		r, err := messages.Decode([]byte(body), nil)
		require.NoError(t, err)
		for i, to := range apis[:2] {
			out, losses, err := to.encode(nil, r, nil)
			require.NoError(t, err)
			require.Contains(t, string(out), mark)
			require.Equal(t, ttl, losses)
			back, err := to.decode(out, nil)
			require.NoError(t, err)
			other, losses, err := apis[1-i].encode(nil, back, nil)
			require.NoError(t, err)
			require.Contains(t, string(other), mark)
			require.Empty(t, losses)
		}
	}
}

// The names of participants are losses of conversions from the Chat API, for each role.
func TestNamesAreLostByConversions(t *testing.T) {
	const body = `{"model":"m","max_tokens":5,"messages":[{"role":"system","name":"a","content":"s"},{"role":"developer","name":"b","content":"d"},` +
		`{"role":"user","name":"c","content":"u"},{"role":"system","name":"d","content":"s"}]}`
	r, err := chat.Decode([]byte(body), nil)
	require.NoError(t, err)
	for _, to := range apis[1:] {
		_, losses, err := to.encode(nil, r, nil)
		require.NoError(t, err)
		for i := range 4 {
			require.Contains(t, losses, block.Loss{Path: fmt.Sprintf("messages[%d]", i), Why: "the name of a participant"}, to.api.String())
		}
	}
}
