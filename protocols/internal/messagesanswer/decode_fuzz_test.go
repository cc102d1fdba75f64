// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func FuzzStreamDecoder(f *testing.F) {
	streamtest.FuzzDecoder(f, newDecoder,
		textDelta("0", `"a\ud83d"`)+"\n"+textDelta("0", `"\ude00"`)+"\n"+stopped,
		blockStart("0", `{"type":"tool_use","id":"a","name":"get","input":{"x":1}}`)+"\n"+blockStop("0")+"\n"+stopFor("max_tokens")+"\n"+stopped,
		blockStart("0", getCall)+"\n"+inputDelta("0", `"{}\""`)+"\n"+blockStop("0")+"\n"+stopped,
		blockStart("0", `{"type":"mcp_tool_use","input":{}}`)+"\n"+inputDelta("0", `"{}"`)+"\n"+blockStop("0"),
		blockStart("0", `{"type":"compaction"}`)+"\n"+blockDelta("0", `{"type":"compaction_delta","content":"a"}`)+"\n"+stopped,
		blockStart("0", `{"type":"thinking","thinking":"a","signature":"S"}`)+"\n"+blockStart("0", `{"type":"x_tool_result","tool_use_id":"a"}`),
		`{"error":{"message":"m"}}`, `oops`,
	)
}

func FuzzDecodeResponse(f *testing.F) {
	streamtest.FuzzResponse(f, messagesanswer.NewDecoder(nil).AppendWhole,
		`{"content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"a","citations":[{}]},{"type":"x","input":{}}],"stop_reason":"max_tokens","usage":{"input_tokens":1}}`,
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`,
	)
}
