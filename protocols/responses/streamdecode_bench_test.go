// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/responses"
)

// streamEvent is what of an event a decoder needs, for encoding/json.
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
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(b, err)
	var example [][]byte
	for line := range bytes.Lines(raw) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			example = append(example, data)
		}
	}
	delta := []byte(`{"type":"response.output_text.delta","sequence_number":412,"item_id":"msg_68a93ab8671881a3","output_index":1,"content_index":0,"delta":" the \"quick\" brown","logprobs":[]}`)
	for _, c := range []struct {
		name string
		data [][]byte
	}{{"delta", [][]byte{delta}}, {"example", example}} {
		size := int64(0)
		for _, data := range c.data {
			size += int64(len(data))
		}
		b.Run("stream="+c.name+"/with=weft", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			d := responses.NewStreamDecoder(nil)
			var out []event.Event
			for b.Loop() {
				for _, data := range c.data {
					if out, err = d.Decode(out[:0], nil, data); err != nil {
						b.Fatal(err)
					}
				}
				if len(c.data) > 1 {
					d.Reset()
				}
			}
		})
		b.Run("stream="+c.name+"/with=encoding_json", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			for b.Loop() {
				for _, data := range c.data {
					var e streamEvent
					if err := json.Unmarshal(data, &e); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
