// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// Thread returns what a request continues: the ID of the stored response, and the ID of the stored conversation that it belongs
// to. They are "" if absent or not a string, and for a request of another API. [block.Request.Field] returns the other
// fields that only the Responses API has, such as include, store and background.
func Thread(r *block.Request) (previous, conversation string) {
	if r.API() != block.Responses {
		return "", ""
	}
	previous, _ = codec.FieldOf(r, "previous_response_id").Str(nil)
	conv := codec.FieldOf(r, "conversation")
	if id := conv.Get("id"); id.Exists() {
		conv = id
	}
	conversation, _ = conv.Str(nil)
	return previous, conversation
}
