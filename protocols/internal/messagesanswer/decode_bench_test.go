// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"encoding/json"
	"testing"

	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// streamEvent holds the fields of an event that a decoder needs, for encoding/json.
type streamEvent struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	ContentBlock *struct {
		Type, Text, Thinking, Signature, ID, Name string
		Input                                     json.RawMessage
	} `json:"content_block"`
	Delta *struct {
		Type, Text, Thinking, Signature string
		PartialJSON                     string `json:"partial_json"`
		StopReason                      string `json:"stop_reason"`
	} `json:"delta"`
	Message *struct {
		ID, Model string
		Usage     *usage
	} `json:"message"`
	Usage *usage `json:"usage"`
}

func BenchmarkStreamDecoder(b *testing.B) {
	streamtest.BenchDecoder[streamEvent](b, newDecoder(), textDelta("0", `" the \"quick\" brown"`))
}
