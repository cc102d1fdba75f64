// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func FuzzStreamDecoder(f *testing.F) {
	streamtest.FuzzDecoder(f, newDecoder,
		`{"type":"response.output_text.delta","delta":"a\ud83d"}`+"\n"+`{"type":"response.output_text.done","text":"a😀b"}`,
		itemAdded("0", `{"type":"function_call","id":"f","name":"get"}`)+"\n"+`{"type":"response.function_call_arguments.delta","delta":"{\"x\":"}`+"\n"+completed,
		`{"type":"response.function_call_arguments.delta","item_id":"f","delta":"{}"}`+"\n"+itemDone("0", `{"type":"function_call","id":"f","name":"get","call_id":"f","arguments":"{}"}`)+"\n"+completed,
		itemDone("0", `{"type":"web_search_call","id":"w"}`)+"\n"+last("completed", `,"output":[{"type":"web_search_call"},{"type":"mcp_call"}]`),
		`{"type":"response.content_part.done","part":{"type":"output_text","text":"a","annotations":[{}],"logprobs":[{}]}}`+"\n"+last("failed", `,"error":{"code":"x"}`),
		`{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":"a"}`+"\n"+itemDone("0", `{"type":"reasoning","content":[{"text":"b"}],"summary":[{"text":"a"},{"text":"c"}],"encrypted_content":"S"}`),
		`{"error":{"message":"m"}}`, `oops`,
	)
}

func FuzzDecodeResponse(f *testing.F) {
	streamtest.FuzzResponse(f, responsesanswer.NewDecoder(nil).AppendWhole,
		`{"status":"failed","error":{"code":"server_error","message":"m"},"output":[{"role":"assistant","content":"a"},{"type":"function_call","name":"f","arguments":{"a":1}}]}`,
		`{"output":[{"type":"message","content":[{"type":"output_text","text":"a","annotations":[{}],"logprobs":[1]},{"type":"x"}]},{"type":"reasoning","summary":"a"}]}`,
	)
}
