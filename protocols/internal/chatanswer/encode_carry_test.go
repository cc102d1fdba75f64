// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
)

// TestCharacterAroundSignature checks that a character that is split between two deltas of a run is joined although a
// signature, which this API cannot express, is between them.
func TestCharacterAroundSignature(t *testing.T) {
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m"})
	out := s.Append(nil,
		event.Event{Kind: event.Reasoning, Call: -1, Data: []byte("\xe2\x82")},
		event.Event{Kind: event.Signature, Call: -1, Data: []byte("c2ln")},
		event.Event{Kind: event.Reasoning, Call: -1, Data: []byte("\xac")},
	)
	require.Contains(t, string(out), `"reasoning_content":"€"`)
	require.NotContains(t, string(out), "\uFFFD")
	require.Equal(t, 1, s.Dropped())
}
