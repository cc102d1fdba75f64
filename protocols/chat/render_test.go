// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

type decodeFunc func([]byte, *block.Limits) (*block.Request, error)

func TestAppendMessages(t *testing.T) {
	// An agent's turn in the Messages API: tool results are in order of completion, and a reminder follows them.
	const agent = `{"system":[{"type":"text","text":"S1"},{"type":"text","text":"S2"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"<system-reminder>r</system-reminder>"},{"type":"text","text":"go"}]},
		{"role":"system","content":"env"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"},
			{"type":"tool_use","id":"c1","name":"f","input":{ "b":1.0, "a":"\u00e9" }},{"type":"tool_use","id":"c2","name":"g","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"two"},{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"},{"type":"text","text":"1"}]},
			{"type":"text","text":"<system-reminder>todo</system-reminder>"}]}]}`
	tests := []struct {
		name   string
		decode decodeFunc
		body   string
		opt    *chat.RenderOptions
		want   []string
		losses []string
	}{
		{
			"separators of parts", messages.Decode, agent, &chat.RenderOptions{Separators: map[string]string{"system": "", "user": " ", "tool": "; "}}, []string{
				`{"role":"system","content":"S1S2"}`,
				`{"role":"user","content":"<system-reminder>r</system-reminder> go"}`,
				`{"role":"system","content":"env"}`,
				`{"role":"assistant","content":"ok","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{ \"b\":1.0, \"a\":\"\\u00e9\" }"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"c1","name":"f","content":"one; 1"}`,
				`{"role":"tool","tool_call_id":"c2","name":"g","content":"two\n<system-reminder>todo</system-reminder>"}`,
			}, nil,
		},
		{
			"an agent's turn", messages.Decode, agent, nil, []string{
				`{"role":"system","content":"S1\nS2"}`,
				`{"role":"user","content":"<system-reminder>r</system-reminder>\ngo"}`,
				`{"role":"system","content":"env"}`,
				`{"role":"assistant","content":"ok","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{ \"b\":1.0, \"a\":\"\\u00e9\" }"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"c1","name":"f","content":"one\n1"}`,
				`{"role":"tool","tool_call_id":"c2","name":"g","content":"two\n<system-reminder>todo</system-reminder>"}`,
			}, nil,
		},
		{
			"late system as user, object arguments", messages.Decode, agent,
			&chat.RenderOptions{System: chat.SystemAsUser, Arguments: chat.ArgumentsObject, Past: func(int) (keep, blank bool) { return false, false }}, []string{
				`{"role":"system","content":"S1\nS2"}`,
				`{"role":"user","content":"<system-reminder>r</system-reminder>\ngo"}`,
				`{"role":"user","content":"<system-reminder>\nenv\n</system-reminder>"}`,
				`{"role":"assistant","content":"ok","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{ "b":1.0, "a":"\u00e9" }}},{"id":"c2","type":"function","function":{"name":"g","arguments":{}}}]}`,
				`{"role":"tool","tool_call_id":"c1","name":"f","content":"one\n1"}`,
				`{"role":"tool","tool_call_id":"c2","name":"g","content":"two\n<system-reminder>todo</system-reminder>"}`,
			}, nil,
		},
		{
			"late system after results", messages.Decode,
			`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]},` +
				`{"role":"system","content":"env"},{"role":"system","content":[{"type":"text","text":"more"}]},{"role":"assistant","content":"a"},{"role":"system","content":"x"}]}`,
			&chat.RenderOptions{System: chat.SystemAsUser}, []string{
				`{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"c","name":"f","content":"r\n<system-reminder>\nenv\n</system-reminder>\n<system-reminder>\nmore\n</system-reminder>"}`,
				`{"role":"assistant","content":"a"}`,
				`{"role":"user","content":"<system-reminder>\nx\n</system-reminder>"}`,
			}, nil,
		},
		{
			"deferred tools are declared once, by the first reference in the prompt", messages.Decode,
			`{"tools":[{"name":"b","input_schema":{},"defer_loading":true},{"name":"c","input_schema":{},"defer_loading":true}],` +
				`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a","input":{}},{"type":"tool_use","id":"y","name":"a","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"y","content":[{"type":"tool_reference","tool_name":"b"},{"type":"tool_reference","tool_name":"c"}]},` +
				`{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_reference","tool_name":"b"},{"type":"tool_reference","tool_name":"b"}]}]}]}`,
			nil, []string{
				`{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"a","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"x","name":"a","content":"Tool b is available now:\n{\"type\":\"function\",\"function\":{\"name\":\"b\",\"parameters\":{}}}\nTool b is available now."}`,
				`{"role":"tool","tool_call_id":"y","name":"a","content":"Tool b is available now.\nTool c is available now:\n{\"type\":\"function\",\"function\":{\"name\":\"c\",\"parameters\":{}}}"}`,
			}, nil,
		},
		{
			"deferred tools are declared where they are referenced", messages.Decode,
			`{"tools":[{"name":"b","input_schema":{},"defer_loading":true},{"name":"c","description":"d","input_schema":{"x":1},"defer_loading":true},{"name":"a","input_schema":{}}],` +
				`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_reference","tool_name":"c"},{"type":"tool_reference","tool_name":"gone"}]}]}]}`,
			nil, []string{
				`{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"x","name":"a","content":"Tool c is available now:\n{\"type\":\"function\",\"function\":{\"name\":\"c\",\"description\":\"d\",\"parameters\":{\"x\":1}}}\nTool gone is available now."}`,
			}, nil,
		},
		{
			"a reference next to an image", messages.Decode,
			`{"tools":[{"name":"c","input_schema":{},"defer_loading":true}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_reference","tool_name":"c"},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWs="}}]}]}]}`,
			nil, []string{
				`{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"x","name":"a","content":[{"type":"text","text":"Tool c is available now:\n{\"type\":\"function\",\"function\":{\"name\":\"c\",\"parameters\":{}}}"},` +
					`{"type":"image_url","image_url":{"url":"data:image/png;base64,aWs="}}]}`,
			}, nil,
		},
		{
			"text only", messages.Decode,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWs="}}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[` +
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aWs="}}]}]}]}`,
			&chat.RenderOptions{TextOnly: true}, []string{
				`{"role":"user","content":"see\n[image left out: only text can be read here]"}`,
				`{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"x","name":"a","content":"[document left out: only text can be read here]"}`,
			}, []string{"messages[0].content[1]: a block that templates do not know: image", "messages[2].content[0].content[0]: a document without text"},
		},
		{
			"arguments as a client's JSON library prints them", chat.Decode,
			`{"messages":[{"role":"assistant","tool_calls":[` +
				`{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"b\":\" \\\" {\"}"}},` +
				`{"id":"c2","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},` +
				`{"id":"c3","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}]}`,
			&chat.RenderOptions{Arguments: chat.ArgumentsRespelled}, []string{
				`{"role":"assistant","content":"","tool_calls":[` +
					`{"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1,"b":" \" {"}}},` +
					`{"id":"c2","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},` +
					`{"id":"c3","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`,
			}, nil,
		},
		{
			"late system merged", messages.Decode, `{"system":"S","messages":[{"role":"user","content":"a"},{"role":"system","content":"late"}]}`,
			&chat.RenderOptions{System: chat.SystemMerge}, []string{
				`{"role":"system","content":"S\nlate"}`, `{"role":"user","content":"a"}`,
			}, []string{"messages[1]: the position of system text, moved to the start"},
		},
		{
			"late system merged, none at the start", chat.Decode,
			`{"messages":[{"role":"developer","content":"d"},{"role":"user","content":"a"},{"role":"system","content":"x"},{"role":"assistant","content":"b"},{"role":"system","content":"y"}]}`,
			&chat.RenderOptions{System: chat.SystemMerge, KeepDeveloper: true}, []string{
				`{"role":"system","content":"x\ny"}`, `{"role":"developer","content":"d"}`, `{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`,
			}, []string{"messages[2]: the position of system text, moved to the start", "messages[4]: the position of system text, moved to the start"},
		},
		{
			"text next to results is a question", messages.Decode,
			`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true},{"type":"text","text":"stop"}]}]}`,
			nil, []string{
				`{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"c","name":"f","content":""}`,
				`{"role":"user","content":"stop"}`,
			}, []string{"messages[1].content[0].is_error: the mark of a failed tool"},
		},
		{
			"interleaved reasoning", messages.Decode,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"thinking","thinking":"b"},{"type":"tool_use","id":"d","name":"f","input":{}}]}]}`,
			&chat.RenderOptions{ReasoningSegments: true}, []string{
				`{"role":"assistant","content":"","reasoning_content":["a","b",""],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			}, nil,
		},
		{
			"reasoning in the text, of one turn", messages.Decode,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"one"}]},{"role":"user","content":"u"},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"b"},{"type":"text","text":"two"},{"type":"thinking","thinking":"c"}]}]}`,
			&chat.RenderOptions{Past: func(turn int) (keep, blank bool) { return turn == 2, false }, Inline: &chat.Tags{Open: "<think>\n", Close: "\n</think>\n\n"}}, []string{
				`{"role":"assistant","content":"one"}`, `{"role":"user","content":"u"}`,
				`{"role":"assistant","content":"<think>\nb\nc\n</think>\n\ntwo"}`,
			}, []string{"messages[2].content[2]: the order of reasoning after text or calls"},
		},
		{
			"a blank for reasoning that was off", messages.Decode,
			`{"messages":[{"role":"assistant","content":"one"},{"role":"user","content":"u"},{"role":"assistant","content":"two"},{"role":"user","content":"v"},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"b"},{"type":"text","text":"three"}]}]}`,
			&chat.RenderOptions{Past: func(turn int) (keep, blank bool) { return true, turn > 1 }}, []string{
				`{"role":"assistant","content":"one"}`, `{"role":"user","content":"u"}`,
				`{"role":"assistant","content":"two","reasoning_content":"\n"}`, `{"role":"user","content":"v"}`,
				`{"role":"assistant","content":"three","reasoning_content":"b"}`,
			}, nil,
		},
		{
			"interleaved reasoning in one string", messages.Decode,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"thinking","thinking":"b"}]}]}`,
			nil, []string{
				`{"role":"assistant","content":"","reasoning_content":"a\nb","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			}, []string{"messages[0].content[2]: the order of reasoning after text or calls"},
		},
		{
			"consecutive items are one message", responses.Decode,
			`{"instructions":"I","input":[{"role":"developer","content":"D"},{"role":"user","content":[{"type":"input_text","text":"go"}]},
				{"type":"reasoning","summary":[{"type":"summary_text","text":"s1"},{"type":"summary_text","text":"s2"}]},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},
				{"type":"function_call","call_id":"c1","name":"f","namespace":"ns","arguments":"{ }"},
				{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"a\"b"},
				{"type":"custom_tool_call_output","call_id":"c2","output":"two"},{"type":"function_call_output","call_id":"c1","output":"one"},
				{"type":"reasoning","encrypted_content":"x"},{"type":"message","role":"assistant","content":"end"}],
			"tools":[{"type":"namespace","name":"ns","tools":[{"type":"function","name":"f"}]},{"type":"function","name":"f"}]}`,
			&chat.RenderOptions{KeepDeveloper: true}, []string{
				`{"role":"system","content":"I"}`, `{"role":"developer","content":"D"}`, `{"role":"user","content":"go"}`,
				`{"role":"assistant","content":"ok","reasoning_content":"s1\n\ns2","tool_calls":[{"id":"c1","type":"function","function":{"name":"ns__f","arguments":"{ }"}},{"id":"c2","type":"function","function":{"name":"patch","arguments":"{\"input\":\"a\\\"b\"}"}}]}`,
				`{"role":"tool","tool_call_id":"c1","name":"ns__f","content":"one"}`,
				`{"role":"tool","tool_call_id":"c2","name":"patch","content":"two"}`,
				`{"role":"assistant","content":"end"}`,
			}, []string{"input[8]: reasoning that only its origin can read"},
		},
		{
			"chat keeps unknown members", chat.Decode,
			`{"messages":[{"role":"developer","content":"d","tools":[ 1 ]},{"role":"user","name":"bob","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"http://i"}}]},{"role":"assistant","reasoning":"r","content":null,"partial":true,"tool_calls":[]}]}`,
			nil, []string{
				`{"role":"system","content":"d","tools":[ 1 ]}`,
				`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"http://i"}}],"name":"bob"}`,
				`{"role":"assistant","content":"","reasoning_content":"r","partial":true}`,
			}, nil,
		},
		{
			"a result without its call, an unknown block", chat.Decode,
			`{"messages":[{"role":"tool","tool_call_id":"c","content":"r"},{"role":"user","content":[{"type":"hologram"}]}]}`,
			nil, []string{`{"role":"tool","tool_call_id":"c","content":"r"}`, `{"role":"user","content":""}`},
			[]string{"messages[0].tool_call_id: the call of a tool result, which is not right before it", "messages[1].content[0]: a block that templates do not know: hologram"},
		},
		{"nothing", chat.Decode, `{"messages":[]}`, nil, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			requireWalk(t, r, tt.opt)
			out, losses := chat.AppendMessages([]byte(">"), r, tt.opt)
			want := ">[" + strings.Join(tt.want, ",") + "]"
			if diff := cmp.Diff(want, string(out)); diff != "" {
				t.Error(diff)
			}
			var got []string
			for _, l := range losses {
				got = append(got, l.String())
			}
			if diff := cmp.Diff(tt.losses, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAppendTools(t *testing.T) {
	tests := []struct {
		name   string
		decode decodeFunc
		body   string
		want   string
		losses int
	}{
		{"none", chat.Decode, `{"messages":[]}`, `[]`, 0},
		{
			"chat, byte for byte", chat.Decode,
			`{"messages":[],"tools":[ {"function":{"parameters":{ "z":1,"a":2 },"name":"f"},"type":"function"} , {"type":"custom","custom":{"name":"c"}}]}`,
			`[{"function":{"parameters":{ "z":1,"a":2 },"name":"f"},"type":"function"},{"type":"function","function":{"name":"c","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}]`, 0,
		},
		{
			"responses", responses.Decode,
			`{"tools":[{"type":"function","name":"f","description":"d","parameters":{ "z":1 },"strict":false},{"type":"web_search"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}`,
			`[{"type":"function","function":{"name":"f","description":"d","parameters":{ "z":1 },"strict":false}},{"type":"function","function":{"name":"n__f"}}]`, 1,
		},
		{
			"messages: deferred tools are written where they are referenced", messages.Decode,
			`{"tools":[{"name":"b","input_schema":{},"defer_loading":true},{"name":"c","input_schema":{},"defer_loading":true},{"name":"a","input_schema":{}}],
			"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_reference","tool_name":"c"}]}]}]}`,
			`[{"type":"function","function":{"name":"a","parameters":{}}}]`, 0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			out, losses := chat.AppendTools(nil, r)
			if diff := cmp.Diff(tt.want, string(out)); diff != "" {
				t.Error(diff)
			}
			require.Len(t, losses, tt.losses)
		})
	}
}

func ExampleAppendMessages() {
	r, err := messages.Decode([]byte(`{"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`), nil)
	if err != nil {
		panic(err)
	}
	prompt, losses := chat.AppendMessages(nil, r, nil)
	fmt.Println(string(prompt), losses)
	// Output: [{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}] []
}
