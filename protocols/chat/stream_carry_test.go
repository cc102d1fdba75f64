// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
)

// TestCharacterAroundSignature sees a character whole that two deltas of one run share, although there is a signature
// between them, for which this API has no form.
func TestCharacterAroundSignature(t *testing.T) {
	s := chat.NewStream(chat.StreamOptions{ID: "chatcmpl-1", Model: "m"})
	out := s.Append(nil,
		event.Event{Kind: event.Reasoning, Call: -1, Data: []byte("\xe2\x82")},
		event.Event{Kind: event.Signature, Call: -1, Data: []byte("c2ln")},
		event.Event{Kind: event.Reasoning, Call: -1, Data: []byte("\xac")},
	)
	require.Contains(t, string(out), `"reasoning_content":"€"`)
	require.NotContains(t, string(out), "\uFFFD")
	require.Equal(t, 1, s.Dropped())
}
