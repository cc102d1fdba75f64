// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// AppendCountRequest appends r, a request of any API, as the body of POST /v1/messages/count_tokens, which counts the tokens
// of the prompt. The body is a request with only the fields that affect the prompt; [Decode] parses it. Losses and
// opt.Strict are as in [AppendRequest], except that fields that do not affect the prompt, such as sampling and limits, are not
// losses.
func AppendCountRequest(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	return codec.Count(dst, r, opt, countMember, AppendRequest)
}

func countMember(name string) bool {
	switch name {
	case "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control",
		"context_management", "mcp_servers":
		return true
	}
	return false
}

// AppendTokenCount appends the response of count_tokens for a prompt of n tokens.
func AppendTokenCount(dst []byte, n int64) []byte {
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '}')
}

// DecodeTokenCount parses the response of count_tokens. Errors are of type *[block.Error].
func DecodeTokenCount(body []byte) (int64, error) {
	return streamdec.TokenCount(body)
}
