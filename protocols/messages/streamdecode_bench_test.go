// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
)

// streamEvent is what of an event a decoder needs, for encoding/json.
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
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(b, err)
	var example [][]byte
	for line := range bytes.Lines(raw) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			example = append(example, data)
		}
	}
	delta := []byte(textDelta("0", `" the \"quick\" brown"`))
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
			d := messages.NewStreamDecoder(nil)
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
