// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// streamEvent holds the fields of an event that a decoder needs, for encoding/json.
type streamEvent struct {
	Type         string         `json:"type"`
	ItemID       string         `json:"item_id"`
	OutputIndex  int            `json:"output_index"`
	ContentIndex int            `json:"content_index"`
	SummaryIndex int            `json:"summary_index"`
	Delta        string         `json:"delta"`
	Text         string         `json:"text"`
	Arguments    string         `json:"arguments"`
	Name         string         `json:"name"`
	Logprobs     []any          `json:"logprobs"`
	Item         *streamItem    `json:"item"`
	Part         *streamPart    `json:"part"`
	Response     *streamMessage `json:"response"`
}

type streamItem struct {
	ID, Type, Status, Name, Arguments string
	CallID                            string       `json:"call_id"`
	Content, Summary                  []streamPart `json:",omitempty"`
}

type streamPart struct{ Type, Text string }

type streamMessage struct {
	Status string
	Output []streamItem
	Usage  *struct {
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
	}
}

func BenchmarkStreamDecoder(b *testing.B) {
	streamtest.BenchDecoder[streamEvent](b, newDecoder(), `{"type":"response.output_text.delta","sequence_number":412,"item_id":"msg_68a93ab8671881a3","output_index":1,"content_index":0,"delta":" the \"quick\" brown","logprobs":[]}`)
}
