// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
)

// TestStreamDecoderLong repeats long text and arguments in the done events, as servers do: what is compared with the deltas
// does not depend on how they were cut.
func TestStreamDecoderLong(t *testing.T) {
	for _, n := range []int{1, 20, 21, 22, 25, 60, 300} {
		var c event.Collector
		d := responsesanswer.NewDecoder(nil)
		feed := func(data string) {
			got, err := d.Append(nil, nil, []byte(data))
			require.NoError(t, err)
			c.Add(got...)
		}
		text, args := strings.Repeat("abc", n), `{"x":"`+strings.Repeat("abc", n)+`"}`
		feed(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}`)
		for range n {
			feed(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"abc"}`)
		}
		feed(`{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"` + text + ` TAIL"}`)
		feed(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f","call_id":"c1","name":"f"}}`)
		for _, piece := range []string{args[:2], args[2 : len(args)/2], args[len(args)/2:]} {
			feed(fmt.Sprintf(`{"type":"response.function_call_arguments.delta","item_id":"f","output_index":1,"delta":%q}`, piece))
		}
		feed(fmt.Sprintf(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"%s TAIL"}]},{"type":"function_call","call_id":"c9","name":"f","arguments":%q}]}}`, text, args))
		require.Len(t, c.Answers[0].Blocks, 2, "%d", n)
		require.Equal(t, text+" TAIL", string(c.Answers[0].Blocks[0].Data))
		require.Equal(t, args, string(c.Answers[0].Blocks[1].Data))
	}
}
