// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// Thread returns how a request uses a conversation that the server stores: the mode, create or continue, and for
// continue the ID of the message that it continues from. Both are "" if the request has no thread or is of another API.
func Thread(r *block.Request) (mode, previous string) {
	if r.API() != block.Messages {
		return "", ""
	}
	v := codec.FieldOf(r, "thread")
	mode, _ = v.Get("type").Str(nil)
	previous, _ = v.Get("previous_message_id").Str(nil)
	return mode, previous
}

// ThinkingDisplay returns thinking.display: summarized, omitted or updates; "" if it is absent or the request is of another
// API.
func ThinkingDisplay(r *block.Request) string {
	if r.API() != block.Messages {
		return ""
	}
	s, _ := codec.FieldOf(r, "thinking", "display").Str(nil)
	return s
}
