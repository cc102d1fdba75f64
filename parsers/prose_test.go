// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// TestMarkersInProse checks that two thoughts are two blocks with nothing between them, and that markers that open and close
// nothing are text once the reasoning is over.
func TestMarkersInProse(t *testing.T) {
	for _, family := range []string{"qwen3", "qwen3_coder+deepseek_r1", "glm45"} {
		for input, want := range map[string][]string{
			"<think>one</think>a<think>two</think>b":                        {"one", "a", "two", "b"},
			"<think>one</think>Use <tool_call> tags and </think> in prose.": {"one", "Use <tool_call> tags and </think> in prose."},
		} {
			p, err := parsers.New(family, nil)
			require.NoError(t, err, family)
			var got []string
			var kind event.Kind
			evs, err := p.Append(nil, []byte(input))
			require.NoError(t, err)
			evs, err = p.Finish(evs, event.None)
			require.NoError(t, err)
			for _, ev := range evs {
				if ev.Kind != event.Reasoning && ev.Kind != event.Text {
					continue
				}
				if ev.Kind != kind {
					got, kind = append(got, ""), ev.Kind
				}
				got[len(got)-1] += string(ev.Data)
			}
			require.Equal(t, want, got, "%s: %s", family, input)
		}
	}
}
