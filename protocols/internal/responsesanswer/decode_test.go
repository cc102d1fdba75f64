// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func newDecoder() streamtest.Reusable { return responsesanswer.NewDecoder(nil) }

const (
	created   = `{"type":"response.created","response":{"id":"r","status":"in_progress","usage":null}}`
	completed = `{"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
)

func TestStreamDecoderExample(t *testing.T) {
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(t, err)
	got, errs := streamtest.Decode(t, responsesanswer.NewDecoder(nil), raw)
	require.Empty(t, errs)
	want := streamtest.Example()
	want[3].ID, want[8].ID = []byte("call_1_0"), []byte("call_1_1")
	want[0].Usage = nil // the API tells it at the end
	require.Empty(t, cmp.Diff(want, got))
}

// itemAdded, itemDone and last return events that most rows have.
func itemAdded(index, item string) string {
	return `{"type":"response.output_item.added","output_index":` + index + `,"item":` + item + `}`
}

func itemDone(index, item string) string {
	return `{"type":"response.output_item.done","output_index":` + index + `,"item":` + item + `}`
}

func last(status, rest string) string {
	return `{"type":"response.` + status + `","response":{"status":"` + status + `"` + rest + `}}`
}

func TestStreamDecoderServers(t *testing.T) {
	const (
		call  = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"get","arguments":"","status":"in_progress"}`
		whole = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"get","arguments":"{\"x\":1}","status":"completed"}`
		msg   = `{"type":"message","id":"msg_1","role":"assistant","content":[],"status":"in_progress"}`
		hello = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}],"status":"completed"}`
		think = `{"type":"reasoning","id":"rs_1","summary":[]}`
		done0 = `{"type":"response.output_item.done","item":{"type":"message","id":"msg_1","content":"plain"}}`
	)
	text := func(delta string) string {
		return `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":` + delta + `}`
	}
	args := func(delta string) string {
		return `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":` + delta + `}`
	}
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{
			"odd shapes of content",
			[]string{
				created, done0, `{"type":"response.output_text.done","item_id":"msg_1","text":"late"}`, `{"type":"response.output_text.annotation.added","item_id":"msg_1","annotation":{}}`,
				`{"type":"response.reasoning_text.delta","content_index":4,"delta":"a"}`, `{"type":"response.output_item.done","item":{"type":"reasoning","content":[{"text":"ab"}]}}`,
				`{"type":"response.output_item.done","item":{"type":"reasoning","summary":"short"}}`, `{"type":"response.output_item.done","item":{"type":"reasoning","content":"long"}}`,
				`{"type":"response.output_item.done","item":{"role":"assistant","content":[{"type":"text","text":"b"}]}}`, completed,
			},
			[]string{`start`, `text "plain"`, `reasoning "a"`, `reasoning "b"`, `reasoning "short"`, `reasoning "long"`, `text "b"`, `usage`, `finish why=stop`},
		},
		{
			"a call that is added again when it is over",
			[]string{created, itemAdded("0", call), itemAdded("0", call), itemDone("0", whole), itemDone("0", whole), args(`"{}"`), `{"type":"response.function_call_arguments.done","item_id":"fc_1","arguments":"{}"}`, completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{"nothing", nil, []string{`error "The engine ended before the answer was finished." why=engine_failed`}},
		{
			"only deltas", // no created, no items, no ids, no indices
			[]string{
				`{"type":"response.output_text.delta","delta":"hel"}`, `{"type":"response.output_text.delta","delta":"lo"}`, completed,
			},
			[]string{`start`, `text "hel"`, `text "lo"`, `usage`, `finish why=stop`},
		},
		{
			"only response.completed",
			[]string{created, last("completed", `,"output":[`+hello+`,`+whole+`]`)},
			[]string{`start`, `text "hello"`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `finish why=tool_calls`},
		},
		{
			"only output_item.done",
			[]string{created, itemDone("0", hello), itemDone("1", whole), completed},
			[]string{`start`, `text "hello"`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"only done events", // #ogx-ai/ogx/issues/5309 leaves one of them out
			[]string{
				created, itemAdded("0", msg), `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"hello"}`,
				itemAdded("1", call), `{"type":"response.function_call_arguments.done","output_index":1,"name":"get","arguments":"{\"x\":1}"}`, completed,
			},
			[]string{`start`, `text "hello"`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"deltas of the beginning only", // LiteLLM 1.8x, #BerriAI/litellm/issues/20711
			[]string{created, itemAdded("0", call), args(`"{\"x\""`), `{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":"{\"x\":1}"}`, itemDone("0", whole), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\""`, `tool_args call=0 ":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"done contradicts",
			[]string{created, itemAdded("0", msg), text(`"hallo"`), itemDone("0", hello), last("completed", `,"output":[`+hello+`]`)},
			[]string{`start`, `text "hallo"`, `finish why=stop`},
		},
		{
			"done contradicts and is longer",
			[]string{created, itemAdded("0", msg), text(`"ha"`), itemDone("0", hello), completed},
			[]string{`start`, `text "ha"`, `usage`, `finish why=stop`},
		},
		{
			"output_item.done without arguments",
			[]string{created, itemAdded("0", call), args(`"{}"`), itemDone("0", call), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"arguments in output_item.added alone",
			[]string{created, itemAdded("0", whole), itemDone("0", call), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"arguments in output_item.added and in deltas",
			[]string{created, itemAdded("0", whole), args(`"{\"x\":1}"`), itemDone("0", whole), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"arguments as an object",
			[]string{created, itemDone("0", `{"type":"function_call","call_id":"c1","name":"get","arguments":{"x": 1}}`), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\": 1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"arguments before the name", // no output_item.added
			[]string{created, args(`"{\"x\""`), args(`":1}"`), `{"type":"response.function_call_arguments.done","item_id":"fc_1","name":"get","arguments":"{\"x\":1}"}`, itemDone("0", whole), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"a name in the done event only",
			[]string{created, args(`"{}"`), `{"type":"response.function_call_arguments.done","item_id":"fc_1","name":"get","arguments":"{}"}`, completed},
			[]string{`start`, `tool_start call=0 "get"`, `tool_args call=0 "{}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"no name at all",
			[]string{created, args(`"{}"`), completed},
			[]string{`start`, `tool_abort call=0 why=bad_name`, `usage`, `finish why=stop`},
		},
		{
			"no call_id",
			[]string{created, itemDone("0", `{"type":"function_call","name":"get","arguments":"{}"}`), completed},
			[]string{`start`, `tool_start call=0 "get"`, `tool_args call=0 "{}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"no output_item.done",
			[]string{created, itemAdded("0", call), args(`"{}"`), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"item ids differ in every event", // LiteLLM, #BerriAI/litellm/pull/36375
			[]string{
				created, itemAdded("0", think),
				`{"type":"response.reasoning_summary_text.delta","item_id":"rs_x","output_index":0,"summary_index":0,"delta":"a"}`,
				`{"type":"response.reasoning_summary_text.delta","item_id":"rs_y","output_index":0,"summary_index":0,"delta":"b"}`,
				itemDone("0", `{"type":"reasoning","id":"rs_z","summary":[{"type":"summary_text","text":"ab"}]}`),
				last("completed", `,"output":[{"type":"reasoning","id":"rs_w","summary":[{"type":"summary_text","text":"ab"}]}]`),
			},
			[]string{`start`, `reasoning "a"`, `reasoning "b"`, `finish why=stop`},
		},
		{
			"all items have index 0",
			[]string{
				created, itemAdded("0", think), itemDone("0", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"}]}`),
				itemAdded("0", call), itemAdded("0", `{"type":"function_call","id":"fc_2","call_id":"c2","name":"put","arguments":""}`),
				args(`"{\"x\":1}"`), `{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":0,"delta":"{}"}`,
				itemDone("0", whole), itemDone("0", `{"type":"function_call","id":"fc_2","call_id":"c2","name":"put","arguments":"{}"}`),
				last("completed", `,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},`+whole+`,{"type":"function_call","call_id":"c2","name":"put","arguments":"{}"}]`),
			},
			[]string{
				`start`, `reasoning "a"`, `tool_start call=0 "get" id="c1"`, `tool_start call=1 "put" id="c2"`, `tool_args call=0 "{\"x\":1}"`,
				`tool_args call=1 "{}"`, `tool_end call=0`, `tool_end call=1`, `finish why=tool_calls`,
			},
		},
		{
			"items and events without ids, two calls open", // llama.cpp, #can1357/oh-my-pi/pull/1971
			[]string{
				created, `{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c1","name":"get","arguments":""}}`,
				`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c2","name":"put","arguments":""}}`,
				`{"type":"response.function_call_arguments.done","arguments":"{\"a\":1}"}`,
				`{"type":"response.function_call_arguments.done","arguments":"{\"b\":2}"}`,
				`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"get","arguments":""}}`,
				`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c2","name":"put","arguments":""}}`, completed,
			},
			[]string{
				`start`, `tool_start call=0 "get" id="c1"`, `tool_start call=1 "put" id="c2"`, `tool_args call=0 "{\"a\":1}"`, `tool_args call=1 "{\"b\":2}"`,
				`tool_end call=0`, `tool_end call=1`, `usage`, `finish why=tool_calls`,
			},
		},
		{
			"llama.cpp", // tools/server/server-task.cpp at 00efb3e: no indices, call_id as item_id, empty encrypted_content
			[]string{
				`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress"}}`,
				`{"type":"response.output_item.added","item":{"id":"rs_1","summary":[],"type":"reasoning","content":[],"encrypted_content":"","status":"in_progress"}}`,
				`{"type":"response.reasoning_text.delta","delta":"hm","item_id":"rs_1"}`,
				`{"type":"response.output_item.added","item":{"content":[],"id":"msg_1","role":"assistant","status":"in_progress","type":"message"}}`,
				`{"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text","text":""}}`,
				`{"type":"response.output_text.delta","item_id":"msg_1","delta":"hel"}`, `{"type":"response.output_text.delta","item_id":"msg_1","delta":"lo"}`,
				`{"type":"response.output_item.added","item":{"arguments":"","call_id":"fc_a","name":"get","type":"function_call","status":"in_progress"}}`,
				`{"type":"response.function_call_arguments.delta","delta":"{\"x\"","item_id":"fc_a"}`,
				`{"type":"response.function_call_arguments.delta","delta":":1}","item_id":"fc_"}`,
				`{"type":"response.output_item.done","item":{"id":"rs_1","summary":[],"type":"reasoning","content":[{"text":"hm","type":"reasoning_text"}],"encrypted_content":""}}`,
				`{"type":"response.output_text.done","item_id":"msg_1","text":"hello"}`,
				`{"type":"response.content_part.done","item_id":"msg_1","part":{"type":"output_text","annotations":[],"logprobs":[],"text":"hello"}}`,
				`{"type":"response.output_item.done","item":` + hello + `}`,
				`{"type":"response.output_item.done","item":{"type":"function_call","status":"completed","arguments":"{\"x\":1}","call_id":"fc_a","name":"get"}}`,
				`{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[{"id":"rs_1","type":"reasoning","summary":[],"content":[{"text":"hm","type":"reasoning_text"}]},` + hello +
					`,{"type":"function_call","status":"completed","arguments":"{\"x\":1}","call_id":"fc_a","name":"get"}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}`,
			},
			[]string{
				`start`, `reasoning "hm"`, `text "hel"`, `text "lo"`, `tool_start call=0 "get" id="fc_a"`, `tool_args call=0 "{\"x\""`, `tool_args call=0 ":1}"`,
				`tool_end call=0`, `usage`, `finish why=tool_calls`,
			},
		},
		{
			"id null in output_item.done, other ids at the end", // vLLM, #vllm-project/vllm/pull/44608 and /pull/47916
			[]string{
				created, itemAdded("0", call), args(`"{\"x\":1}"`), itemDone("0", strings.Replace(whole, `"fc_1"`, "null", 1)),
				last("completed", `,"output":[`+strings.Replace(strings.Replace(whole, `"fc_1"`, `"fc_9"`, 1), `"c1"`, `"c9"`, 1)+`]`),
			},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `finish why=tool_calls`},
		},
		{
			"reasoning closed by an output_text part", // vLLM, gpt-oss
			[]string{
				created, itemAdded("0", `{"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":null}`),
				`{"type":"response.content_part.added","item_id":"rs_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}`,
				`{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"hm"}`,
				`{"type":"response.reasoning_text.done","item_id":"rs_1","output_index":0,"content_index":0,"text":"hm"}`,
				`{"type":"response.content_part.done","item_id":"rs_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"hm"}}`,
				itemDone("0", `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`), completed,
			},
			[]string{`start`, `reasoning "hm"`, `usage`, `finish why=stop`},
		},
		{
			"a message that is only closed", // LiteLLM, #BerriAI/litellm/issues/37852
			[]string{
				created, itemAdded("0", call), args(`"{\"x\":1}"`), itemDone("0", whole),
				`{"type":"response.output_text.done","item_id":"chatcmpl-1","output_index":0,"content_index":0,"text":""}`,
				`{"type":"response.content_part.done","item_id":"chatcmpl-1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
				itemDone("0", `{"type":"message","id":"chatcmpl-1","role":"assistant","content":[{"type":"output_text","text":"","annotations":[]}]}`), completed,
			},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `usage`, `finish why=tool_calls`},
		},
		{
			"calls whose arguments interleave",
			[]string{
				created, itemAdded("0", call), itemAdded("1", `{"type":"function_call","id":"fc_2","call_id":"c2","name":"put","arguments":""}`),
				`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{"}`,
				`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"}"}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"}"}`,
				itemDone("1", `{"type":"function_call","id":"fc_2","call_id":"c2","name":"put","arguments":"{}"}`), itemDone("0", strings.Replace(whole, `{\"x\":1}`, `{}`, 1)), completed,
			},
			[]string{
				`start`, `tool_start call=0 "get" id="c1"`, `tool_start call=1 "put" id="c2"`, `tool_args call=0 "{"`, `tool_args call=1 "{"`, `tool_args call=0 "}"`,
				`tool_args call=1 "}"`, `tool_end call=1`, `tool_end call=0`, `usage`, `finish why=tool_calls`,
			},
		},
		{
			"one of the calls is new at the end",
			[]string{
				created, itemAdded("0", call), args(`"{\"x\":1}"`), itemDone("0", whole),
				last("completed", `,"output":[`+whole+`,{"type":"function_call","id":"fc_2","call_id":"c2","name":"put","arguments":"{}"}]`),
			},
			[]string{
				`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_end call=0`, `tool_start call=1 "put" id="c2"`, `tool_args call=1 "{}"`,
				`tool_end call=1`, `finish why=tool_calls`,
			},
		},
		{
			"arguments that are no JSON",
			[]string{created, itemDone("0", strings.Replace(whole, `{\"x\":1}`, `{\"x\":01}`, 1)), itemDone("1", strings.NewReplacer("1", "2", `{\"x\":1}`, `[1]`).Replace(whole)), completed},
			[]string{
				`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":01}"`, `tool_abort call=0 "get" why=bad_arguments`,
				`tool_start call=1 "get" id="c2"`, `tool_args call=1 "[1]"`, `tool_abort call=1 "get" why=bad_arguments`, `usage`, `finish why=stop`,
			},
		},
		{
			"arguments that are cut",
			[]string{created, itemDone("0", strings.Replace(whole, `{\"x\":1}`, `{\"x\":`, 1)), completed},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":"`, `tool_abort call=0 "get" why=truncated`, `usage`, `finish why=stop`},
		},
		{
			"an incomplete call",
			[]string{created, itemDone("0", strings.Replace(whole, `"completed"`, `"incomplete"`, 1)), last("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`)},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{\"x\":1}"`, `tool_abort call=0 "get" why=truncated`, `finish why=length`},
		},
		{
			"an incomplete response with an open call",
			[]string{created, itemAdded("0", call), args(`"{}"`), last("incomplete", ``)},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{}"`, `tool_abort call=0 "get" why=truncated`, `finish why=length`},
		},
		{
			"custom calls",
			[]string{
				created, itemAdded("0", `{"type":"custom_tool_call","id":"ctc_1","call_id":"c1","name":"patch","input":""}`),
				`{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":0,"delta":"*** Begin\n"}`,
				`{"type":"response.custom_tool_call_input.done","item_id":"ctc_1","output_index":0,"input":"*** Begin\n*** End"}`,
				itemDone("0", `{"type":"custom_tool_call","id":"ctc_1","call_id":"c1","name":"patch","input":"*** Begin\n*** End"}`), completed,
			},
			[]string{
				`start`, `tool_start call=0 "patch" id="c1" custom`, `tool_args call=0 "*** Begin\n" custom`, `tool_args call=0 "*** End" custom`,
				`tool_end call=0 custom`, `usage`, `finish why=tool_calls`,
			},
		},
		{
			"summary parts",
			[]string{
				created, itemAdded("0", think),
				`{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
				`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"a"}`,
				`{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"a"}`,
				`{"type":"response.reasoning_summary_part.done","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"a"}}`,
				`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"b"}`,
				itemDone("0", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"},{"type":"summary_text","text":""},{"type":"summary_text","text":"c"}],"encrypted_content":"SIG"}`),
				completed,
			},
			[]string{`start`, `reasoning "a"`, `reasoning "\n\n"`, `reasoning "b"`, `reasoning "\n\n"`, `reasoning "c"`, `signature "SIG" encrypted`, `usage`, `finish why=stop`},
		},
		{
			"raw reasoning and a summary at once",
			[]string{created, itemDone("0", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"short"}],"content":[{"type":"reasoning_text","text":"long"}]}`), completed},
			[]string{`start`, `reasoning "long"`, `usage`, `finish why=stop`},
		},
		{
			"only a signature",
			[]string{created, itemAdded("0", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"early"}`), itemDone("0", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"SIG"}`), completed},
			[]string{`start`, `signature "SIG" encrypted`, `usage`, `finish why=stop`},
		},
		{
			"annotations and log probabilities",
			[]string{
				created, itemAdded("0", msg), strings.Replace(text(`"he"`), `"delta"`, `"logprobs":[{"token":"he"}],"delta"`, 1), text(`"llo"`),
				`{"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation"}}`,
				itemDone("0", `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"hello","annotations":[{"type":"url_citation"},{"type":"file_citation"}],"logprobs":[{"token":"he"}, {"token":"llo"}]}]}`), completed,
			},
			[]string{
				`start`, `logprobs "[{\"token\":\"he\"}]"`, `text "he"`, `text "llo"`, `annotation "{\"type\":\"url_citation\"}"`, `logprobs "[{\"token\":\"llo\"}]"`,
				`annotation "{\"type\":\"file_citation\"}"`, `usage`, `finish why=stop`,
			},
		},
		{
			"an annotation before its text",
			[]string{created, `{"type":"response.output_text.annotation.added","annotation":{"type":"url_citation"}}`, completed},
			[]string{`start`, `text`, `annotation "{\"type\":\"url_citation\"}"`, `usage`, `finish why=stop`},
		},
		{
			"a refusal",
			[]string{
				created, itemAdded("0", msg), `{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"no"}`,
				`{"type":"response.refusal.done","item_id":"msg_1","output_index":0,"content_index":0,"refusal":"no!"}`,
				itemDone("0", `{"type":"message","id":"msg_1","content":[{"type":"refusal","refusal":"no!"}]}`), completed,
			},
			[]string{`start`, `refusal "no"`, `refusal "!"`, `usage`, `finish why=refusal`},
		},
		{
			"a message with several parts",
			[]string{created, itemAdded("0", msg), text(`"a"`), strings.Replace(text(`"b"`), `"content_index":0`, `"content_index":1`, 1),
				itemDone("0", `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"bc"},{"type":"output_audio","data":"AA"}]}`), completed},
			[]string{
				`start`, `text "a"`, `text "b"`, `text "c"`,
				`opaque "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_audio\",\"data\":\"AA\"}]}" id="message"`, `usage`, `finish why=stop`,
			},
		},
		{
			"deltas of the second part only",
			[]string{created, itemAdded("0", msg), strings.Replace(text(`"b"`), `"content_index":0`, `"content_index":1`, 1),
				itemDone("0", `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`), completed},
			[]string{`start`, `text "b"`, `text "a"`, `usage`, `finish why=stop`},
		},
		{
			"tools of the server",
			[]string{
				created, itemAdded("0", `{"type":"web_search_call","id":"ws_1","status":"in_progress"}`), `{"type":"response.web_search_call.searching","item_id":"ws_1","output_index":0}`,
				itemDone("0", `{"type":"web_search_call","id":"ws_1","status":"completed"}`),
				`{"type":"response.mcp_call.failed","item_id":"m_1","output_index":1}`, itemDone("1", `{"type":"mcp_call","id":"m_1","error":{"message":"x"}}`),
				`{"type":"response.image_generation_call.partial_image","item_id":"i","partial_image_b64":"AA"}`,
				itemDone("2", `{"type":"shell_call_output","call_id":"s1","output":[]}`),
				last("completed", `,"output":[{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"mcp_call","id":"m_1"},{"type":"shell_call_output","call_id":"s1","output":[]},{"type":"compaction","id":"c","encrypted_content":"X"}]`),
			},
			[]string{
				`start`, `opaque "{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\"}" id="web_search_call"`,
				`opaque "{\"type\":\"mcp_call\",\"id\":\"m_1\",\"error\":{\"message\":\"x\"}}" id="mcp_call"`,
				`tool_result "{\"type\":\"shell_call_output\",\"call_id\":\"s1\",\"output\":[]}" id="s1" server`,
				`opaque "{\"type\":\"compaction\",\"id\":\"c\",\"encrypted_content\":\"X\"}" id="compaction"`, `finish why=stop`,
			},
		},
		{
			"surrogates in two deltas",
			[]string{created, text(`"a\ud83d"`), text(`"\ude00b"`), text(`"\ud83d"`), text(`""`), text(`"\\ud83d"`), text(`"\uD83D"`), completed},
			[]string{`start`, `text "a"`, `text "😀b"`, "text \"\ufffd\\\\ud83d\"", "text \"\ufffd\"", `usage`, `finish why=stop`},
		},
		{
			"a failed response",
			[]string{created, itemAdded("0", call), args(`"{"`), last("failed", `,"error":{"code":"rate_limit_exceeded","message":"Slow down."},"usage":{"input_tokens":3,"output_tokens":0}`)},
			[]string{`start`, `tool_start call=0 "get" id="c1"`, `tool_args call=0 "{"`, `tool_abort call=0 "get" why=truncated`, `usage`, `error "Slow down." id="rate_limit_exceeded" why=overloaded`},
		},
		{
			"failed without an error", // Dynamo
			[]string{created, last("failed", `,"error":null`)},
			[]string{`start`, `error "The engine reported an error without a message." why=engine_failed`},
		},
		{
			"context length",
			[]string{last("failed", `,"error":{"code":"context_length_exceeded","message":"Too long."}`)},
			[]string{`start`, `error "Too long." id="context_length_exceeded" why=invalid`},
		},
		{"cancelled", []string{created, last("cancelled", "")}, []string{`start`, `error "The response was cancelled." why=canceled`}},
		{
			"an error event",
			[]string{created, `{"type":"error","code":"server_error","message":"Oops.","param":null,"sequence_number":3}`, text(`"late"`)},
			[]string{`start`, `error "Oops." id="server_error" why=engine_failed`},
		},
		{
			"a nested error event",
			[]string{`{"type":"error","error":{"type":"invalid_request_error","code":"model_not_found","message":"No."}}`},
			[]string{`error "No." id="model_not_found" why=not_found`},
		},
		{
			"the error of another API",
			[]string{created, text(`"a"`), `{"error":{"message":"Engine died","type":"InternalServerError","code":500}}`},
			[]string{`start`, `text "a"`, `error "Engine died" why=engine_failed`},
		},
		{"content filter", []string{created, last("incomplete", `,"incomplete_details":{"reason":"content_filter"}`)}, []string{`start`, `finish why=content_filter`}},
		{"too many tool calls", []string{created, last("incomplete", `,"incomplete_details":{"reason":"max_tool_calls"}`)}, []string{`start`, `finish why=paused`}},
		{"the status counts", []string{created, `{"type":"response.completed","response":{"status":"incomplete"}}`}, []string{`start`, `finish why=length`}},
		{"response.done", []string{created, text(`"a"`), `{"type":"response.done","response":{"id":"r"}}`}, []string{`start`, `text "a"`, `finish why=stop`}},
		{
			"[DONE] and unknown events",
			[]string{created, `{"type":"keepalive"}`, `{"type":"response.new_thing","delta":"x"}`, text(`"a"`), completed, `[DONE]`},
			[]string{`start`, `text "a"`, `usage`, `finish why=stop`},
		},
		{
			"cut",
			[]string{created, text(`"a"`), itemAdded("1", call), `[DONE]`},
			[]string{`start`, `text "a"`, `tool_start call=0 "get" id="c1"`, `tool_abort call=0 "get" why=truncated`, `error "The engine ended before the answer was finished." why=engine_failed`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errs := streamtest.Decode(t, responsesanswer.NewDecoder(nil), streamtest.Bare(c.in...))
			require.Empty(t, errs)
			require.Empty(t, cmp.Diff(c.want, streamtest.Strings(got)))
		})
	}
}

// The events that tell of the progress of tools, of audio and of parts say nothing that does not come again.
func TestStreamDecoderSkipped(t *testing.T) {
	for _, name := range strings.Fields(`
		content_part.added reasoning_summary_part.added reasoning_part.added
		mcp_call.in_progress mcp_call.completed mcp_call.failed mcp_call_arguments.delta mcp_call_arguments.done
		mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed
		web_search_call.in_progress web_search_call.searching web_search_call.completed
		file_search_call.in_progress file_search_call.searching file_search_call.completed
		code_interpreter_call.in_progress code_interpreter_call.interpreting code_interpreter_call.completed
		code_interpreter_call_code.delta code_interpreter_call_code.done
		image_generation_call.in_progress image_generation_call.generating image_generation_call.partial_image image_generation_call.completed
		shell_call_command.added shell_call_command.delta shell_call_command.done
		shell_call_output_content.delta shell_call_output_content.done
		audio.delta audio.done audio.transcript.delta audio.transcript.done`) {
		d := responsesanswer.NewDecoder(nil)
		got, err := d.Append(nil, []byte("response."+name), []byte(`{"type":"response.`+name+`","sequence_number":1,"item_id":"x","output_index":0,"content_index":0,"part":{"type":"output_text","text":""},"delta":"d","code":"c"}`))
		require.NoError(t, err, name)
		require.Empty(t, got, name)
		require.False(t, d.Ended(), name)
	}
}

func TestStreamDecoderUsage(t *testing.T) {
	got, errs := streamtest.Decode(t, responsesanswer.NewDecoder(nil), streamtest.Bare(
		`{"type":"response.in_progress","response":{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4}}}}`, created,
		last("completed", `,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5}}`),
	))
	require.Empty(t, errs)
	require.Equal(t, []string{"start", "usage", "finish why=stop"}, streamtest.Strings(got))
	require.Equal(t, event.Tokens{Prompt: 9, Cached: 4}, *got[0].Usage)
	require.Equal(t, event.Tokens{Prompt: 9, Cached: 4, CacheWrite: 2, Output: 7, Reasoning: 5}, *got[1].Usage)
}

func TestStreamDecoderParts(t *testing.T) {
	got, errs := streamtest.Decode(t, responsesanswer.NewDecoder(nil), streamtest.Bare(
		itemAdded("0", `{"type":"message","id":"m0"}`), itemAdded("1", `{"type":"message","id":"m1"}`),
		`{"type":"response.output_text.delta","item_id":"m1","delta":"b"}`, `{"type":"response.output_text.delta","item_id":"m0","delta":"a"}`,
		`{"type":"response.output_text.delta","item_id":"m1","delta":"b"}`, completed,
	))
	require.Empty(t, errs)
	var parts []string
	for _, e := range got[1:4] {
		parts = append(parts, fmt.Sprint(e.Part, " ", e))
	}
	require.Equal(t, []string{`0 text "b"`, `1 text "a"`, `0 text "b"`}, parts)
}

func TestStreamDecoderToolName(t *testing.T) {
	opt := &responsesanswer.DecoderOptions{ToolName: func(namespace, name string) string { return strings.Trim(namespace+"__"+name, "_") }}
	item := `{"type":"function_call","call_id":"c1","namespace":"git","name":"log","arguments":"{}"}`
	want := []string{"start", `tool_start call=0 "git__log" id="c1"`, `tool_args call=0 "{}"`, "tool_end call=0", "finish why=tool_calls"}
	got, _ := streamtest.Decode(t, responsesanswer.NewDecoder(opt), streamtest.Bare(itemAdded("0", item), itemDone("0", item), last("completed", "")))
	require.Equal(t, want, streamtest.Strings(got))
	got, err := responsesanswer.NewDecoder(opt).AppendWhole(nil, []byte(`{"status":"completed","output":[`+item+`]}`))
	require.NoError(t, err)
	require.Equal(t, want, streamtest.Strings(got))
	got, _ = streamtest.Decode(t, responsesanswer.NewDecoder(opt), streamtest.Bare(
		`{"type":"response.function_call_arguments.done","item_id":"f","name":"log","arguments":"{}"}`, last("completed", ""),
	))
	require.Equal(t, `tool_start call=0 "log"`, got[1].String())
}

func TestStreamDecoderFaults(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, c := range []struct {
		name, data string
		want       block.Error
		events     []string
	}{
		{name: "cut", data: `{"type":"response.output_text.delta","delta":"a`, want: block.Error{Kind: block.Malformed, Path: "delta", Offset: 47}},
		{name: "not JSON", data: `oops`, want: block.Error{Kind: block.Malformed}},
		{name: "an array", data: `[]`, want: block.Error{Kind: block.WrongType}},
		{name: "twice", data: `{"type":"x","type":"y"}`, want: block.Error{Kind: block.Malformed, Path: "type", Offset: 12}},
		{name: "encoding", data: "{\"type\":\"\xff\"}", want: block.Error{Kind: block.Malformed, Path: "type", Offset: 9}},
		{name: "depth", data: `{"x":` + deep + `}`, want: block.Error{Kind: block.LimitPassed, Path: "x" + strings.Repeat("[0]", 127), Offset: 132, Limit: "depth", Max: 128}},
		{name: "delta", data: `{"type":"response.output_text.delta","delta":7}`, want: block.Error{Kind: block.WrongType, Path: "delta", Offset: 45}, events: []string{}},
		{name: "index", data: `{"type":"response.output_text.delta","output_index":"0","delta":"a"}`, want: block.Error{Kind: block.WrongType, Path: "output_index", Offset: 52}, events: []string{"start", `text "a"`}},
		{name: "no item", data: `{"type":"response.output_item.done"}`, want: block.Error{Kind: block.WrongType, Path: "item"}},
		{name: "item", data: `{"type":"response.output_item.done","item":[]}`, want: block.Error{Kind: block.WrongType, Path: "item", Offset: 43}},
		{name: "content", data: itemDone("0", `{"type":"message","content":[{"type":"output_text","text":"a"},"b"]}`), want: block.Error{Kind: block.WrongType, Path: "item.content[1]", Offset: 123}, events: []string{"start", `text "a"`}},
		{name: "annotations", data: itemDone("0", `{"type":"message","content":[{"type":"output_text","annotations":[7]}]}`), want: block.Error{Kind: block.WrongType, Path: "item.content[0].annotations[0]", Offset: 126}, events: []string{"start"}},
		{name: "contents", data: itemDone("0", `{"type":"message","content":7}`), want: block.Error{Kind: block.WrongType, Path: "item.content", Offset: 88}, events: []string{"start"}},
		{name: "summary", data: itemDone("0", `{"type":"reasoning","summary":["x"]}`), want: block.Error{Kind: block.WrongType, Path: "item.summary[0]", Offset: 91}, events: []string{"start"}},
		{name: "summaries", data: itemDone("0", `{"type":"reasoning","summary":7}`), want: block.Error{Kind: block.WrongType, Path: "item.summary", Offset: 90}, events: []string{"start"}},
		{name: "items", data: last("completed", `,"output":[7]`), want: block.Error{Kind: block.WrongType, Path: "response.output[0]", Offset: 72}, events: []string{"start", "finish why=stop"}},
		{name: "arguments", data: `{"type":"response.function_call_arguments.delta","delta":{}}`, want: block.Error{Kind: block.WrongType, Path: "delta", Offset: 57}, events: []string{"start"}},
		{name: "no response", data: `{"type":"response.completed"}`, want: block.Error{Kind: block.WrongType, Path: "response"}, events: []string{"start", "finish why=stop"}},
		{name: "output", data: last("completed", `,"output":{}`), want: block.Error{Kind: block.WrongType, Path: "response.output", Offset: 71}, events: []string{"start", "finish why=stop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := responsesanswer.NewDecoder(nil)
			got, err := d.Append(nil, nil, []byte(c.data))
			streamtest.CheckError(t, err, len(c.data))
			e := *err.(*block.Error)
			require.True(t, e.Answer)
			e.Msg, e.Answer = "", false
			require.Empty(t, cmp.Diff(c.want, e))
			require.ElementsMatch(t, c.events, streamtest.Strings(got))
			if !d.Ended() {
				got, err = d.Append(nil, nil, []byte(`{"type":"response.output_text.delta","delta":"on"}`))
				require.NoError(t, err)
				require.Equal(t, `text "on"`, got[len(got)-1].String())
			}
		})
	}
}

func TestStreamDecoderPlainError(t *testing.T) {
	got, errs := streamtest.Decode(t, responsesanswer.NewDecoder(nil), []byte("event: error\ndata: upstream died\n\n"))
	require.Empty(t, errs)
	require.Equal(t, []string{`error "upstream died" why=engine_failed`}, streamtest.Strings(got))
}

func TestStreamDecoderLimits(t *testing.T) {
	d := responsesanswer.NewDecoder(&responsesanswer.DecoderOptions{Limits: &block.Limits{Body: 100}})
	_, err := d.Append(nil, nil, []byte(`{"type":"response.output_text.delta","delta":"`+strings.Repeat("a", 100)+`"}`))
	require.ErrorContains(t, err, "100 body bytes")

	// Items without end: memory stays where it is, and what fits is delivered.
	d = responsesanswer.NewDecoder(nil)
	var got []event.Event
	limited := 0
	for i := range 6000 {
		got, err = d.Append(got[:0], nil, fmt.Appendf(nil, `{"type":"response.output_text.delta","item_id":"m%d","output_index":%d,"delta":"a"}`, i, i))
		if err != nil {
			limited++
			require.ErrorContains(t, err, "too many output items and parts")
		}
	}
	require.Greater(t, limited, 3000)
	parts := strings.Repeat(`{"type":"output_text","text":"a"},`, 5000)
	got, err = responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"output":[{"type":"message","content":[`+parts[:len(parts)-1]+`]}]}`))
	require.ErrorContains(t, err, "too many output items and parts")
	require.Len(t, got, 4095+2)
	got, err = responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"output":[{"type":"reasoning","summary":[`+parts[:len(parts)-1]+`]}]}`))
	require.ErrorContains(t, err, "too many output items and parts")
	require.Len(t, got, 4095+4094+2)
	got, err = responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"output":[`+parts[:len(parts)-1]+`]}`))
	require.ErrorContains(t, err, "too many output items and parts")
	require.Len(t, got, 4096+2)

	// Arguments that wait for a name longer than allowed come from the item.
	d.Reset()
	piece := strings.Repeat("x", 300<<10)
	for range 5 {
		got, err = d.Append(got[:0], nil, []byte(`{"type":"response.function_call_arguments.delta","item_id":"f","delta":"`+piece+`"}`))
		require.NoError(t, err)
	}
	whole := `{\"x\":\"` + strings.Repeat(piece, 5) + `\"}`
	got, err = d.Append(got[:0], nil, []byte(itemDone("0", `{"type":"function_call","id":"f","name":"get","arguments":"`+whole+`"}`)))
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, event.ToolEnd, got[2].Kind)
	for range 5 {
		_, err = d.Append(nil, nil, []byte(`{"type":"response.function_call_arguments.delta","item_id":"g","delta":"`+piece+`"}`))
		require.NoError(t, err)
	}
	got, err = d.Append(nil, nil, []byte(itemDone("1", `{"type":"function_call","id":"g","name":"get","arguments":""}`)))
	require.NoError(t, err)
	require.Equal(t, []string{`tool_start call=1 "get"`, `tool_abort call=1 "get" why=limit`}, streamtest.Strings(got))
}

// A server that never comes to the point does not fill memory.
func TestStreamDecoderMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	d := responsesanswer.NewDecoder(nil)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	piece := strings.Repeat("x", 60<<10)
	var got []event.Event
	n := 800
	if os.Getenv("WEFT_TEST") == "long" {
		n = 8000
	}
	for i := range n {
		// Arguments of a call without a name, reasoning, and text in one item: 180 KB.
		for _, data := range []string{
			fmt.Sprintf(`{"type":"response.function_call_arguments.delta","item_id":"f%d","delta":"%s"}`, i, piece),
			`{"type":"response.reasoning_text.delta","delta":"` + piece + `"}`, `{"type":"response.output_text.delta","delta":"` + piece + `"}`,
		} {
			got, _ = d.Append(got[:0], nil, []byte(data))
		}
	}
	require.Less(t, int64(heap())-int64(before), int64(8<<20))
	runtime.KeepAlive(d)
}

func TestDecodeResponse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{
			"several items",
			`{"object":"response","status":"completed","error":null,"output":[
				{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"SIG"},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[{"type":"x"}],"logprobs":[{"token":"hi"}]},{"type":"refusal","refusal":"no"}]},
				{"type":"function_call","call_id":"c1","name":"get","arguments":"{}"},
				{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"***"},
				{"type":"web_search_call","id":"ws"}],"usage":{"input_tokens":1,"output_tokens":2}}`,
			[]string{
				`start`, `reasoning "a"`, `reasoning "\n\n"`, `reasoning "b"`, `signature "SIG" encrypted`, `logprobs "[{\"token\":\"hi\"}]"`, `text "hi"`, `annotation "{\"type\":\"x\"}"`, `refusal "no"`,
				`tool_start call=0 "get" id="c1"`, `tool_args call=0 "{}"`, `tool_end call=0`, `tool_start call=1 "patch" id="c2" custom`, `tool_args call=1 "***" custom`, `tool_end call=1 custom`,
				`opaque "{\"type\":\"web_search_call\",\"id\":\"ws\"}" id="web_search_call"`, `usage`, `finish why=tool_calls`,
			},
		},
		{"two equal texts", `{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`, []string{"start", `text "a"`, `text "a"`, "finish why=stop"}},
		{"one id twice", `{"output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"a"}]},{"type":"message","id":"m","content":"b"}]}`, []string{"start", `text "a"`, `text "b"`, "finish why=stop"}},
		{"incomplete", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, []string{"start", "finish why=length"}},
		{"failed", `{"status":"failed","error":{"code":"server_error","message":"Oops."},"output":[{"type":"message","content":"a"}]}`, []string{"start", `text "a"`, `error "Oops." id="server_error" why=engine_failed`}},
		{"in the background", `{"status":"queued","output":[]}`, []string{"start", `error "The engine ended before the answer was finished." why=engine_failed`}},
		{"an error", `{"error":{"message":"Bad.","type":"invalid_request_error"}}`, []string{`error "Bad." why=invalid`}},
		{"the last event", last("completed", `,"output":[]`), []string{"start", "finish why=stop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(c.in))
			require.NoError(t, err)
			streamtest.CheckWhole(t, got)
			require.Empty(t, cmp.Diff(c.want, streamtest.Strings(got)))
		})
	}
	_, err := responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"output":`))
	streamtest.CheckError(t, err, 10)
	_, err = responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"hello":1}`))
	require.EqualError(t, err, "a response was expected, not an object at byte 0")
}

func TestEvents(t *testing.T) {
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(t, err)
	var c, direct event.Collector
	for e, err := range pull(iotest.OneByteReader(bytes.NewReader(raw)), nil) {
		require.NoError(t, err)
		c.Add(e)
	}
	direct.Add(streamtest.Example()...)
	require.Equal(t, direct.Answers[0].Text(), c.Answers[0].Text())
	require.Equal(t, event.ToolCalls, c.Answers[0].Finish)
	require.Equal(t, direct.Usage, c.Usage)
	d := responsesanswer.NewDecoder(nil)
	_, _ = streamtest.Decode(t, d, raw)
	require.Equal(t, "resp_1 demo", d.ID()+" "+d.Model())

	body, err := os.ReadFile("testdata/example.json") // a server that does not stream
	require.NoError(t, err)
	var whole event.Collector
	for e, err := range pull(bytes.NewReader(body), nil) {
		require.NoError(t, err)
		whole.Add(e)
	}
	require.Empty(t, cmp.Diff(c, whole, cmpopts.IgnoreUnexported(event.Block{}), cmpopts.EquateEmpty()))
}

func TestStreamDecoderAllocs(t *testing.T) {
	d := responsesanswer.NewDecoder(nil)
	for _, data := range []string{
		created, itemAdded("0", `{"type":"message","id":"m"}`), itemAdded("1", `{"type":"reasoning","id":"r"}`),
		itemAdded("2", `{"type":"function_call","id":"f","name":"get"}`),
	} {
		_, err := d.Append(nil, []byte("response.x"), []byte(data))
		require.NoError(t, err)
	}
	streamtest.CheckAllocs(t, d, nil,
		`{"type":"response.output_text.delta","sequence_number":7,"item_id":"m","output_index":0,"content_index":0,"delta":"plain","logprobs":[]}`,
		`{"type":"response.output_text.delta","sequence_number":8,"item_id":"m","output_index":0,"content_index":0,"delta":"a \"quote\"\n","logprobs":[]}`,
		`{"type":"response.reasoning_summary_text.delta","sequence_number":9,"item_id":"r","output_index":1,"summary_index":0,"delta":"hm \u00e9"}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":9,"item_id":"f","output_index":2,"delta":"{\"x\": 1, "}`,
	)
}

func TestEventsWholeLimits(t *testing.T) {
	streamtest.CheckWholeLimits(t, `{"id":"a","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}]}`,
		func(src io.Reader, lim *block.Limits) iter.Seq2[event.Event, error] {
			return pull(src, &responsesanswer.DecoderOptions{Limits: lim})
		})
}
