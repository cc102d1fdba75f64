// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
)

var (
	shapeKeys = []string{
		"type", "text", "content", "role", "id", "name", "input", "output", "arguments", "function", "tool_calls",
		"tool_call_id", "tool_use_id", "call_id", "thinking", "signature", "data", "source", "url", "image_url", "summary",
		"reasoning_content", "refusal", "is_error", "encrypted_content", "cache_control", "custom", "file", "media_type",
		"function_call", "input_audio", "title", "reasoning_details", "thinking_blocks", "format", "index",
	}
	shapeWords = []string{
		"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "search_result", "message",
		"reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "input_text",
		"output_text", "input_image", "input_file", "image_url", "file", "refusal", "user", "assistant", "system", "tool",
		"developer", "compaction", "web_search_call", "tool_reference", "server_tool_use", "mcp_tool_result", "mid_conv_system",
		"reasoning.text", "reasoning.summary", "reasoning.encrypted", "anthropic-claude-v1", "weft1c.s2.abc", "{}", "", "x y",
		"data:image/png;base64,aGk=", "text/plain", "<system-reminder>x</system-reminder>", "\u00e9\"\\",
	}
)

// shape draws a value that resembles a part of a request and often is not one.
func shape(t *rapid.T, depth int) any {
	k := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case depth == 0 || k < 4:
		return rapid.SampledFrom(shapeWords).Draw(t, "word")
	case k == 4:
		return rapid.SampledFrom([]any{nil, true, 1.5, []any{}, map[string]any{}}).Draw(t, "odd")
	case k < 7:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			list = append(list, shape(t, depth-1))
		}
		return list
	}
	m := map[string]any{"type": rapid.SampledFrom(shapeWords).Draw(t, "type")}
	for range rapid.IntRange(0, 5).Draw(t, "n") {
		m[rapid.SampledFrom(shapeKeys).Draw(t, "key")] = shape(t, depth-1)
	}
	return m
}

// turnShape draws a message or item that is mostly well-formed.
func turnShape(t *rapid.T) any {
	m, ok := shape(t, 4).(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	if _, has := m["role"].(string); !has {
		m["role"] = rapid.SampledFrom([]string{"user", "assistant", "system", "tool"}).Draw(t, "role")
	}
	list := []any{}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		p, ok := shape(t, 3).(map[string]any)
		if ok {
			list = append(list, p)
		}
	}
	if rapid.Bool().Draw(t, "list") {
		m["content"] = list
	}
	return m
}

// TestShapes decodes many requests that are nearly valid. Each request that decodes is encoded byte for byte, converts
// to every API with valid JSON that decodes again, unless the Messages API requires a name that it lacks, and renders.
func TestShapes(t *testing.T) {
	for i, a := range apis {
		good := 0
		t.Run(a.api.String(), func(t *testing.T) {
			one := func(t *rapid.T) {
				var turns []any
				for range rapid.IntRange(0, 4).Draw(t, "turns") {
					turns = append(turns, turnShape(t))
				}
				body, err := json.Marshal(map[string]any{[]string{"messages", "input", "messages"}[i]: append([]any{}, turns...)})
				if err != nil {
					t.Fatal(err)
				}
				r, err := a.decode([]byte(string(body)), nil)
				if err != nil {
					if _, ok := errors.AsType[*block.Error](err); !ok {
						t.Fatalf("%T", err)
					}
					return
				}
				good++
				if out, err := r.AppendBody(nil); err != nil || string(out) != string(body) {
					t.Fatalf("%v: %s became %s", err, body, out)
				}
				for _, o := range apis {
					out, _, err := o.encode(nil, r, nil)
					if err != nil {
						t.Fatal(err)
					}
					_, err = o.decode(out, nil)
					if nameless(o.api, err) {
						continue
					}
					if err != nil {
						t.Fatalf("%v: %v\n%s\n%s", o.api, err, body, out)
					}
				}
				for _, opt := range []*chat.RenderOptions{nil, {ReasoningSegments: true, System: chat.SystemMerge}, {Arguments: chat.ArgumentsObject, System: chat.SystemAsUser, KeepDeveloper: true}} {
					if out, _ := chat.AppendMessages(nil, r, opt); !json.Valid(out) {
						t.Fatalf("%s rendered as %s", body, out)
					}
				}
				for _, b := range blocksOf(r) { // each block can be deleted alone
					r2, _ := a.decode([]byte(string(body)), nil)
					for _, b2 := range blocksOf(r2) {
						if off, _ := b2.At.Span(); b2.Equal(b) && off == spanOff(b) {
							if err := r2.Delete(b2.At); err != nil {
								t.Fatal(err)
							}
							break
						}
					}
					out, err := r2.AppendBody(nil)
					if err != nil || !json.Valid(out) {
						t.Fatalf("%v: %s without %v is %s", err, body, b.Kind, out)
					}
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				for range 5 { // many bodies do not decode, and -short draws few
					one(t)
				}
			})
			require.Greater(t, good, 10, "too few requests decode")
		})
	}
}

// nameless reports whether err refuses a call without an id or a name, which the other APIs accept.
func nameless(api block.API, err error) bool {
	return err != nil && api == block.Messages && strings.Contains(err.Error(), "a string that is not empty is required")
}

func spanOff(b block.Block) int {
	off, _ := b.At.Span()
	return off
}
