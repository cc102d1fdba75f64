// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/internal/wire"
)

// EncodeCount appends r, a request of any API, as the body of POST /v1/responses/input_tokens, which asks how many tokens
// the prompt has. That body is a request with the members that make the prompt only; [Decode] reads it. Losses and
// opt.Strict are those of [Encode], but sampling, limits and the like, which do not count, are no losses.
func EncodeCount(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	return wire.Count(dst, r, opt, countMember, Encode)
}

func countMember(name string) bool {
	switch name {
	case "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation",
		"conversation", "previous_response_id":
		return true
	}
	return false
}

// AppendTokenCount appends the answer to a request for a count: the prompt has n tokens.
func AppendTokenCount(dst []byte, n int64) []byte {
	dst = append(dst, `{"object":"response.input_tokens","input_tokens":`...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '}')
}

// DecodeTokenCount reads the answer to a request for a count. Errors are *[block.Error].
func DecodeTokenCount(body []byte) (int64, error) {
	return streamdec.TokenCount(body)
}
