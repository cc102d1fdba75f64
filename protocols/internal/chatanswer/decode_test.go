// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// showEvent formats an event with its choice, its part and its usage, if any.
func showEvent(e event.Event) string {
	s := fmt.Sprintf("%d.%d %v", e.Choice, e.Part, e)
	if e.Usage != nil {
		s += fmt.Sprintf(" %d/%d/%d>%d/%d", e.Usage.Prompt, e.Usage.Cached, e.Usage.CacheWrite, e.Usage.Output, e.Usage.Reasoning)
	}
	if e.Tokens > 0 {
		s += fmt.Sprintf(" tokens=%d", e.Tokens)
	}
	return s
}

// decodeAll decodes a stream whose server-sent events have the given data, including its end. A line "type|data"
// specifies a type.
func decodeAll(t *testing.T, opt *chatanswer.DecoderOptions, lines ...string) (out []string) {
	t.Helper()
	d := chatanswer.NewDecoder(opt)
	var events []event.Event
	add := func(err error) {
		if err != nil {
			out = append(out, "error: "+err.Error())
		}
		for _, e := range events {
			out = append(out, showEvent(e))
		}
	}
	for _, l := range lines {
		typ := ""
		if a, b, ok := strings.Cut(l, "|"); ok && !strings.ContainsAny(a, "{[\" ") {
			typ, l = a, b
		}
		var err error
		events, err = d.Append(events[:0], []byte(typ), []byte(l))
		add(err)
	}
	events = d.Finish(events[:0])
	add(nil)
	return out
}

// chunkOf returns a chunk of choice 0 with delta s.
func chunkOf(s string) string { return `{"id":"r","choices":[{"index":0,"delta":{` + s + `}}]}` }

// chunkEnd returns a chunk with a finish_reason.
func chunkEnd(reason string) string {
	return `{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// TestStreamDecoderServers has one case for each variation between servers. If a case names a server, its chunks have
// that server's form.
func TestStreamDecoderServers(t *testing.T) {
	const cut = `0.0 error "The engine ended before the answer was finished." why=engine_failed`
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{
			name: "OpenAI: role, text, finish, usage, [DONE]",
			in: []string{
				`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`,
				`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null}`,
				`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":" \u00e9\ud83d\ude00"},"finish_reason":null}],"usage":null}`,
				`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`,
				`{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":5,"accepted_prediction_tokens":0}}}`,
				"[DONE]", chunkOf(`"content":"after the end"`),
			},
			want: []string{
				"0.0 start", `0.0 text "Hi"`, `0.0 text " é😀"`, "0.0 finish why=stop", "0.0 usage 9/4/2>12/5",
			},
		},
		{
			name: "vLLM: reasoning, null content, stop sequence, token ids",
			in: []string{
				`{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}`,
				`{"id":"r","choices":[{"index":0,"delta":{"reasoning":"Hm","reasoning_content":"Hm"},"finish_reason":null,"token_ids":[5,6]}]}`,
				`{"id":"r","choices":[{"index":0,"delta":{"reasoning":".","content":null},"finish_reason":null,"token_ids":[7]}]}`,
				`{"id":"r","choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop","stop_reason":"###","token_ids":null}]}`,
				`{"id":"r","choices":[],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1,"prompt_tokens_details":null}}`,
				"[DONE]",
			},
			want: []string{
				"0.0 start", `0.0 reasoning "Hm" tokens=2`, `0.0 reasoning "." tokens=1`, `0.1 text "ok"`,
				`0.1 finish "###" why=stop_sequence`, "0.0 usage 3/0/0>1/0",
			},
		},
		{
			name: "Envoy AI Gateway: reasoning_content is an object",
			in: []string{
				chunkOf(`"role":"assistant","reasoning_content":{"text":"Hm"}`), chunkOf(`"reasoning_content":{"text":"."}`),
				chunkOf(`"reasoning_content":{"signature":"c2ln"}`), chunkOf(`"content":"ok"`), chunkEnd("stop"), "[DONE]",
			},
			want: []string{
				"0.0 start", `0.0 reasoning "Hm"`, `0.0 reasoning "."`, `0.0 signature "c2ln"`, `0.1 text "ok"`, "0.1 finish why=stop",
			},
		},
		{
			name: "vLLM: stop_reason is a token; SGLang: matched_stop",
			in: []string{
				`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop","stop_reason":151645},{"index":1,"delta":{"content":"b"},"finish_reason":"stop","matched_stop":"END"}]}`,
				"[DONE]",
			},
			want: []string{"0.0 start", `0.0 text "a"`, "0.0 finish why=stop", `1.0 text "b"`, `1.0 finish "END" why=stop_sequence`},
		},
		{
			name: "calls in pieces, one after the other",
			in: []string{
				chunkOf(`"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get","arguments":""}}]`),
				chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]`),
				chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":": 1.0}"}}]`),
				chunkOf(`"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"put","arguments":"{}"}}]`),
				chunkEnd("tool_calls"), "[DONE]",
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "get" id="call_a"`, `0.0 tool_args call=0 "{\"x\""`, `0.0 tool_args call=0 ": 1.0}"`,
				"0.0 tool_end call=0", `0.1 tool_start call=1 "put" id="call_b"`, `0.1 tool_args call=1 "{}"`, "0.1 tool_end call=1",
				"0.1 finish why=tool_calls",
			},
		},
		{
			name: "calls at the same time",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]`),
				chunkOf(`"tool_calls":[{"index":1,"function":{"arguments":"{ "}},{"index":0,"function":{"arguments":"{}"}}]`),
				chunkOf(`"tool_calls":[{"index":1,"function":{"arguments":"}"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.1 tool_start call=1 "g" id="b"`, `0.1 tool_args call=1 "{ "`,
				`0.0 tool_args call=0 "{}"`, "0.0 tool_end call=0", `0.1 tool_args call=1 "}"`, "0.1 tool_end call=1", "0.1 finish why=tool_calls",
			},
		},
		{
			name: "interleaved: reasoning, call, reasoning, call, text",
			in: []string{
				chunkOf(`"reasoning_content":"a"`),
				chunkOf(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]`),
				chunkOf(`"reasoning_content":"b"`),
				chunkOf(`"tool_calls":[{"index":1,"id":"y","function":{"name":"g","arguments":""}}]`),
				chunkOf(`"content":"c"`), chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 reasoning "a"`, `0.1 tool_start call=0 "f" id="x"`, `0.1 tool_args call=0 "{}"`, "0.1 tool_end call=0",
				`0.2 reasoning "b"`, `0.3 tool_start call=1 "g" id="y"`, `0.4 text "c"`, "0.3 tool_end call=1", "0.4 finish why=tool_calls",
			},
		},
		{
			name: "Gemini, Ollama: whole calls, all with index 0",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]`),
				chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{}"`, "0.0 tool_end call=0",
				`0.1 tool_start call=1 "f" id="b"`, `0.1 tool_args call=1 "{}"`, "0.1 tool_end call=1", "0.1 finish why=tool_calls",
			},
		},
		{
			name: "whole calls without index and id",
			in: []string{
				chunkOf(`"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{\"a\":1}"}}]`),
				chunkOf(`"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f"`, `0.0 tool_args call=0 "{}"`, "0.0 tool_end call=0", `0.1 tool_start call=1 "f"`,
				`0.1 tool_args call=1 "{\"a\":1}"`, "0.1 tool_end call=1", `0.2 tool_start call=2 "f"`, `0.2 tool_args call=2 "{}"`,
				"0.2 tool_end call=2", "0.2 finish why=tool_calls",
			},
		},
		{
			name: "calls in pieces without index, by id",
			in: []string{
				chunkOf(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]`),
				chunkOf(`"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{"}}]`),
				chunkOf(`"tool_calls":[{"id":"a","function":{"arguments":"}"}},{"id":"b","function":{"arguments":"}"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{"`, `0.1 tool_start call=1 "g" id="b"`,
				`0.1 tool_args call=1 "{"`, `0.0 tool_args call=0 "}"`, "0.0 tool_end call=0", `0.1 tool_args call=1 "}"`, "0.1 tool_end call=1",
				"0.1 finish why=tool_calls",
			},
		},
		{
			name: "calls in pieces without index and id",
			in: []string{
				chunkOf(`"tool_calls":[{"function":{"name":"f","arguments":""}}]`),
				chunkOf(`"tool_calls":[{"function":{"arguments":"{}"}}]`),
				chunkOf(`"tool_calls":[{"function":{"name":"g","arguments":""}}]`),
				chunkOf(`"tool_calls":[{"function":{"arguments":"{}"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f"`, `0.0 tool_args call=0 "{}"`, "0.0 tool_end call=0",
				`0.1 tool_start call=1 "g"`, `0.1 tool_args call=1 "{}"`, "0.1 tool_end call=1", "0.1 finish why=tool_calls",
			},
		},
		{
			name: "names repeated and empty, ids repeated and fresh (vLLM 0.6)",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":"chatcmpl-tool-77","type":"function","function":{"name":"","arguments":"}"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":"","type":null,"function":{"name":null,"arguments":null}}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":null,"function":{"name":"f","arguments":" "}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{"`, `0.0 tool_args call=0 "}"`, `0.0 tool_args call=0 " "`,
				"0.0 tool_end call=0", "0.0 finish why=tool_calls",
			},
		},
		{
			name: "id first, then the name",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","type":"function"}]`),
				chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"{\"k\":"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"function":{"name":"f","arguments":"1"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"}"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{\"k\":"`, `0.0 tool_args call=0 "1"`,
				`0.0 tool_args call=0 "}"`, "0.0 tool_end call=0", "0.0 finish why=tool_calls",
			},
		},
		{
			name: "name first, then the id",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"function":{"name":"f"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":"a"}]`),
				chunkOf(`"tool_calls":[{"index":0,"id":"late","function":{"arguments":"{}"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{}"`, "0.0 tool_end call=0", "0.0 finish why=tool_calls",
			},
		},
		{
			name: "a name alone, and nothing more",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"function":{"name":"f"}}]`), chunkOf(`"content":"t"`),
				chunkOf(`"tool_calls":[{"index":1,"function":{"name":"g"}}]`), chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f"`, `0.1 text "t"`, "0.0 tool_end call=0", `0.2 tool_start call=1 "g"`, "0.2 tool_end call=1",
				"0.2 finish why=tool_calls",
			},
		},
		{
			name: "arguments as an object keep their bytes",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{ "b" : 1.50, "a":[ ]}}}]`), chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{ \"b\" : 1.50, \"a\":[ ]}"`, "0.0 tool_end call=0",
				"0.0 finish why=tool_calls",
			},
		},
		{
			name: "custom calls",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"patch","input":""}}]`),
				chunkOf(`"tool_calls":[{"index":0,"custom":{"input":"*** Begin"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"custom":{"input":"\nEnd"}}]`),
				chunkOf(`"content":"t"`), chunkOf(`"tool_calls":[{"index":0,"custom":{"input":"late"}}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "patch" id="a" custom`, `0.0 tool_args call=0 "*** Begin" custom`,
				`0.0 tool_args call=0 "\nEnd" custom`, `0.1 text "t"`, `0.0 tool_args call=0 "late" custom`, "0.0 tool_end call=0 custom",
				"0.0 finish why=tool_calls",
			},
		},
		{
			name: "custom calls cut by the length limit: the last one is",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]`),
				chunkOf(`"tool_calls":[{"index":1,"id":"b","type":"custom","custom":{"name":"g","input":"y"}}]`), chunkEnd("length"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a" custom`, `0.0 tool_args call=0 "x" custom`, `0.1 tool_start call=1 "g" id="b" custom`,
				`0.1 tool_args call=1 "y" custom`, "0.0 tool_end call=0 custom", `0.1 tool_abort call=1 "g" why=truncated custom`, "0.1 finish why=length",
			},
		},
		{
			name: "characters that are cut in UTF-16",
			in: []string{
				chunkOf(`"reasoning":"r\ud83d"`), chunkOf(`"reasoning":"\ude00"`), chunkOf(`"content":"\ud83d"`), chunkOf(`"content":"\ude00!\ud83d"`),
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"\ud83d"}}]`),
				chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":""}}]`), chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"\ude00\":1}"}}]`),
				chunkOf(`"tool_calls":[{"index":1,"id":"b","type":"custom","custom":{"name":"g","input":"\ud83d"}}]`),
				chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 reasoning "r"`, `0.0 reasoning "😀"`, `0.1 text ""`, `0.1 text "😀!"`, `0.1 text "�"`, `0.2 tool_start call=0 "f" id="a"`,
				`0.2 tool_args call=0 "{\""`, `0.2 tool_args call=0 "😀\":1}"`, "0.2 tool_end call=0", `0.3 tool_start call=1 "g" id="b" custom`,
				`0.3 tool_args call=1 "�" custom`, "0.3 tool_end call=1 custom", "0.3 finish why=tool_calls",
			},
		},
		{
			name: "function_call",
			in: []string{
				chunkOf(`"function_call":{"name":"f","arguments":""}`), chunkOf(`"function_call":{"arguments":"{\"a\":"}`),
				chunkOf(`"function_call":{"arguments":"2}"}`), chunkEnd("function_call"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f"`, `0.0 tool_args call=0 "{\"a\":"`, `0.0 tool_args call=0 "2}"`, "0.0 tool_end call=0",
				"0.0 finish why=tool_calls",
			},
		},
		{
			name: "arguments cut by the length limit",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x"}},{"index":2,"id":"c","function":{"name":"h"}},{"index":3,"id":"d"}]`),
				chunkEnd("length"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{}"`, "0.0 tool_end call=0", `0.1 tool_start call=1 "g" id="b"`,
				`0.1 tool_args call=1 "{\"x"`, `0.2 tool_start call=2 "h" id="c"`, `0.1 tool_abort call=1 "g" why=truncated`,
				`0.2 tool_abort call=2 "h" why=truncated`, "0.3 tool_abort call=3 why=truncated", "0.3 finish why=length",
			},
		},
		{
			name: "arguments that are no JSON",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{x}"}}]`),
				chunkOf(`"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":1"}}]`),
				chunkOf(`"tool_calls":[{"index":2,"id":"c"}]`),
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{x}"`, `0.0 tool_abort call=0 "f" why=bad_arguments`,
				`0.1 tool_start call=1 "g" id="b"`, `0.1 tool_args call=1 "{\"x\":1"`, `0.1 tool_abort call=1 "g" why=bad_arguments`,
				"0.2 tool_abort call=2 why=bad_name", "0.2 finish why=stop",
			},
		},
		{
			name: "n answers",
			in: []string{
				`{"choices":[{"index":1,"delta":{"role":"assistant"}}]}`, `{"choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"choices":[{"index":1,"delta":{"reasoning":"b"}},{"index":0,"delta":{"content":"c"}}]}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, `{"choices":[{"index":1,"delta":{"content":"d"},"finish_reason":"content_filter"}]}`,
				`{"choices":[{"index":0,"delta":{"content":"late"}},{"index":-1,"delta":{"content":"stray"}},{"index":99999,"delta":{}}]}`,
			},
			want: []string{
				"0.0 start", `0.0 text "a"`, `1.0 reasoning "b"`, `0.0 text "c"`, "0.0 finish why=length", `1.1 text "d"`, "1.1 finish why=content_filter",
			},
		},
		{
			name: "usage on every chunk, and on the last chunk with a choice",
			in: []string{
				`{"choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0}}`,
				`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":7,"total_tokens":8,"completion_tokens":1}}`,
				`{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":7,"total_tokens":8,"completion_tokens":1}}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2}}`,
			},
			want: []string{
				"0.0 start 7/0/0>0/0", "0.0 usage 7/0/0>1/0", `0.0 text "a"`, `0.0 text "b"`, "0.0 usage 7/0/0>2/0", "0.0 finish why=stop",
			},
		},
		{
			name: "usage where others have it: Moonshot, Groq, DeepSeek",
			in: []string{
				chunkOf(`"content":"a"`),
				`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}]}`,
				`{"choices":[],"x_groq":{"id":"req","usage":{"prompt_tokens":3,"completion_tokens":2}}}`,
				`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_cache_hit_tokens":2,"prompt_cache_miss_tokens":1}}`,
			},
			want: []string{
				"0.0 start", `0.0 text "a"`, "0.0 usage 1/0/0>2/0", "0.0 finish why=stop", "0.0 usage 3/0/0>2/0", "0.0 usage 3/2/0>2/0",
			},
		},
		{
			name: "refusal",
			in:   []string{chunkOf(`"content":null,"refusal":"I "`), chunkOf(`"refusal":"won't"`), chunkEnd("stop")},
			want: []string{"0.0 start", `0.0 refusal "I "`, `0.0 refusal "won't"`, "0.0 finish why=refusal"},
		},
		{
			name: "logprobs",
			in: []string{
				`{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.10,"bytes":[97],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}`,
				`{"choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":[]},"finish_reason":"stop"}]}`,
			},
			want: []string{
				"0.0 start", `0.0 text "a"`, `0.0 logprobs "[{\"token\":\"a\",\"logprob\":-0.10,\"bytes\":[97],\"top_logprobs\":[]}]"`, "0.0 finish why=stop",
			},
		},
		{
			name: "annotations before and after the text",
			in: []string{
				chunkOf(`"annotations":[{"type":"a"}]`), chunkOf(`"content":"t","annotations":[{"type":"b"},null]`), chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 text`, `0.0 annotation "{\"type\":\"a\"}"`, `0.0 text "t"`, `0.0 annotation "{\"type\":\"b\"}"`, "0.0 finish why=stop",
			},
		},
		{
			name: "OpenRouter: reasoning_details with and instead of reasoning",
			in: []string{
				chunkOf(`"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]`),
				chunkOf(`"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"b","index":0},{"type":"reasoning.text","signature":"sig"}]`),
				chunkOf(`"reasoning_details":[{"type":"reasoning.summary","summary":"c"},{"type":"reasoning.encrypted","data":"gAAA"}]`),
				chunkOf(`"thinking_blocks":[{"type":"thinking","thinking":"d","signature":"s2"}]`), chunkOf(`"reasoning":"e"`), chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 reasoning "a"`, `0.0 reasoning "b"`, `0.0 signature "sig"`, `0.0 reasoning "c"`, `0.0 reasoning "d"`,
				`0.0 signature "s2"`, `0.0 reasoning "e"`, "0.0 finish why=stop",
			},
		},
		{
			name: "Mistral: content in parts",
			in: []string{
				chunkOf(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`),
				chunkOf(`"content":[{"type":"text","text":"c"},{"type":"reference","reference_ids":[1]},"d"]`), chunkEnd("model_length"),
			},
			want: []string{
				"0.0 start", `0.0 reasoning "a"`, `0.0 reasoning "b"`, `0.1 text "c"`, `0.2 opaque "{\"type\":\"reference\",\"reference_ids\":[1]}" id="reference"`,
				`0.3 text "d"`, "0.3 finish why=context_full",
			},
		},
		{
			name: "reasoning, text and call in one delta; a message in place of a delta",
			in: []string{
				`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"arguments":"{}","name":"f"}}],"content":"t","reasoning_content":"r"},"finish_reason":""}]}`,
				chunkEnd("tool_calls"),
			},
			want: []string{
				"0.0 start", `0.0 reasoning "r"`, `0.1 text "t"`, `0.2 tool_start call=0 "f" id="a"`, `0.2 tool_args call=0 "{}"`, "0.2 tool_end call=0",
				"0.2 finish why=tool_calls",
			},
		},
		{
			name: "Azure: a first chunk without choices, empty chunks",
			in: []string{
				`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0}]}`,
				`{}`, `{"choices":null}`, chunkOf(``), chunkOf(`"role":"assistant"`), chunkOf(`"content":"a"`), "", "  ", chunkEnd("stop"),
				`{"choices":[{"index":0,"delta":null,"content_filter_offsets":{}}]}`, " [DONE]\n",
			},
			want: []string{"0.0 start", `0.0 text "a"`, "0.0 finish why=stop"},
		},
		{
			name: "Dynamo: dispatch events; other events",
			in: []string{
				chunkOf(`"content":"a"`), `tool_call_dispatch|{"choice_index":0,"tool_call":{"index":0}}`, `reasoning_dispatch|{"index":0}`, "ping|pong",
				`ping|{"type":"ping"}`, "message|" + chunkEnd("stop"),
			},
			want: []string{"0.0 start", `0.0 text "a"`, "0.0 finish why=stop"},
		},
		{
			name: "errors in the middle: OpenAI",
			in: []string{
				chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`),
				`{"error":{"message":"The server had an error.","type":"server_error","param":null,"code":null}}`, "[DONE]", chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 tool_start call=0 "f" id="a"`, `0.0 tool_args call=0 "{}"`, `0.0 tool_abort call=0 "f" why=truncated`,
				`0.0 error "The server had an error." why=engine_failed`,
			},
		},
		{
			name: "errors: vLLM, at the start",
			in:   []string{`{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}`, "[DONE]"},
			want: []string{`0.0 error "too long" why=invalid`},
		},
		{
			name: "errors: Dynamo, flat",
			in:   []string{chunkOf(`"content":"a"`), `{"message":"no worker","type":"Service Unavailable","code":503}`},
			want: []string{"0.0 start", `0.0 text "a"`, `0.0 error "no worker" why=overloaded`},
		},
		{
			name: "errors: old vLLM, flat",
			in:   []string{`{"object":"error","message":"nope","type":"NotFoundError","param":null,"code":404}`},
			want: []string{`0.0 error "nope" why=not_found`},
		},
		{
			name: "errors: Ollama, a string",
			in:   []string{chunkOf(`"content":"a"`), `{"error":"llama runner process has terminated"}`},
			want: []string{"0.0 start", `0.0 text "a"`, `0.0 error "llama runner process has terminated" why=engine_failed`},
		},
		{
			name: "errors: OpenRouter, with a choice",
			in: []string{
				chunkOf(`"content":"a"`),
				`{"id":"r","error":{"code":429,"message":"slow down"},"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"error"}]}`,
			},
			want: []string{"0.0 start", `0.0 text "a"`, `0.0 text "b"`, `0.0 error "slow down" why=overloaded`},
		},
		{
			name: "errors: an event of this type",
			in:   []string{"error|upstream gone"},
			want: []string{`0.0 error "upstream gone" why=engine_failed`},
		},
		{
			name: "errors: a finish reason (SGLang, vLLM)",
			in:   []string{chunkOf(`"content":"a"`), chunkEnd("abort")},
			want: []string{"0.0 start", `0.0 text "a"`, `0.0 error "The engine gave up the answer." why=engine_failed`},
		},
		{
			name: "error:null in every chunk",
			in:   []string{`{"error":null,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`},
			want: []string{"0.0 start", `0.0 text "a"`, "0.0 finish why=stop"},
		},
		{
			name: "cut before anything",
			want: []string{cut},
		},
		{
			name: "cut in the arguments",
			in:   []string{chunkOf(`"content":"a"`), chunkOf(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]`)},
			want: []string{
				"0.0 start", `0.0 text "a"`, `0.1 tool_start call=0 "f" id="x"`, `0.1 tool_args call=0 "{\"a\":"`, `0.1 tool_abort call=0 "f" why=truncated`, cut,
			},
		},
		{
			name: "[DONE] without finish_reason",
			in:   []string{chunkOf(`"content":"a"`), "[DONE]"},
			want: []string{"0.0 start", `0.0 text "a"`, cut},
		},
		{
			name: "malformed chunks",
			in: []string{
				chunkOf(`"content":"a"`), `{"choices":[{"delta":{"content":"b"`, `[1]`, `{"choices":{"a":1}}`, `{"choices":[{"delta":{"content":"c"}},7]}`,
				chunkEnd("stop"),
			},
			want: []string{
				"0.0 start", `0.0 text "a"`, "error: choices[0].delta.content: unexpected end of JSON at byte 35",
				"error: an object was expected, not an array at byte 0", "error: choices: an array of choices was expected, not an object at byte 11",
				"error: choices[1]: an object was expected, not a number at byte 38", "0.0 finish why=stop",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(c.want, decodeAll(t, nil, c.in...)))
		})
	}
}

func TestStreamDecoderOptions(t *testing.T) {
	lines := []string{chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"arguments":"12345678"}}]`), "[DONE]"}
	require.Equal(t, []string{"0.0 start", "0.0 tool_abort call=0 why=limit", "0.0 finish why=stop"},
		decodeAll(t, &chatanswer.DecoderOptions{MaxHeld: 7, DoneFinishes: true}, lines...))
	require.Equal(t, []string{"0.0 start", "0.0 tool_abort call=0 why=bad_name", "0.0 finish why=stop"},
		decodeAll(t, &chatanswer.DecoderOptions{MaxHeld: 8, DoneFinishes: true}, lines...))

	d := chatanswer.NewDecoder(&chatanswer.DecoderOptions{Limits: &block.Limits{Body: 10}})
	_, err := d.Append(nil, nil, []byte(lines[0]))
	require.Equal(t, block.LimitPassed, err.(*block.Error).Kind)
}

func TestStreamDecoderHead(t *testing.T) {
	d := chatanswer.NewDecoder(nil)
	require.Empty(t, d.ID()+d.Model())
	events, err := d.Append(nil, nil, []byte(`{"id":"chatcmpl-7","model":"org/m","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`))
	require.NoError(t, err)
	require.Len(t, events, 3)
	require.Equal(t, "chatcmpl-7 org/m", d.ID()+" "+d.Model())
	require.False(t, d.Ended())
	events, err = d.Append(nil, nil, []byte("[DONE]"))
	require.NoError(t, err)
	require.Empty(t, events)
	require.True(t, d.Ended())
	d.Reset()
	require.Empty(t, d.ID())
	require.Len(t, d.Finish(nil), 1, "nothing was received")
}

func chunks(tb testing.TB) [][]byte {
	tb.Helper()
	raw, err := os.ReadFile("../../../shared/bench/protocols/openai_chunks.jsonl")
	if err != nil {
		tb.Skip("needs the shared data: set WEFT_SHARED: ", err)
	}
	return bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
}

func TestStreamDecoderAllocs(t *testing.T) {
	d := chatanswer.NewDecoder(nil)
	streamtest.CheckAllocs(t, d, d.Reset,
		chunkOf(`"role":"assistant","content":""`), chunkOf(`"reasoning_content":"a\nb"`), chunkOf(`"content":"é \"x\""`),
		chunkOf(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"get","arguments":""}}]`),
		chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]`),
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`,
		"[DONE]",
	)
}

// BenchmarkStreamDecoder decodes the chunks of the shared benchmark, for comparison also with encoding/json.
func BenchmarkStreamDecoder(b *testing.B) {
	lines := chunks(b)
	size := 0
	for _, l := range lines {
		size += len(l)
	}
	b.Run("decoder=ours", func(b *testing.B) {
		d := chatanswer.NewDecoder(nil)
		var events []event.Event
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			d.Reset()
			for _, l := range lines {
				var err error
				if events, err = d.Append(events[:0], nil, l); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(lines)), "ns/chunk")
	})
	b.Run("decoder=encodingjson", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			for _, l := range lines {
				var c stdChunk
				if err := json.Unmarshal(l, &c); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(lines)), "ns/chunk")
	})
}

// stdChunk is a chunk for encoding/json.
type stdChunk struct {
	ID                string `json:"id"`
	Object            string `json:"object"`
	Created           int64  `json:"created"`
	Model             string `json:"model"`
	SystemFingerprint string `json:"system_fingerprint"`
	Choices           []struct {
		Index int `json:"index"`
		Delta struct {
			Role             string  `json:"role"`
			Content          *string `json:"content"`
			Refusal          *string `json:"refusal"`
			ReasoningContent *string `json:"reasoning_content"`
			ToolCalls        []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
		TotalTokens      int64 `json:"total_tokens"`
	} `json:"usage"`
}

func TestEventsWholeLimits(t *testing.T) {
	streamtest.CheckWholeLimits(t, `{"id":"a","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`,
		func(src io.Reader, lim *block.Limits) iter.Seq2[event.Event, error] {
			return pull(src, &chatanswer.DecoderOptions{Limits: lim})
		})
}
