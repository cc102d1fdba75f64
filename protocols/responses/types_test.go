// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/responses"
)

func TestThread(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"previous_response_id":"r","conversation":{"id":"c"},"messages":[]}`: {"r", "c"},
		`{"conversation":"c","messages":[]}`:                                   {"", "c"},
		`{"previous_response_id":null,"messages":[]}`:                          {},
		`{"previous_response_id":{"id":"r"},"conversation":[],"messages":[]}`:  {},
	} {
		r, err := responses.Decode([]byte(body), nil)
		require.NoError(t, err)
		previous, conversation := responses.Thread(r)
		require.Equal(t, want, [2]string{previous, conversation})
		other, err := chat.Decode([]byte(body), nil)
		require.NoError(t, err)
		previous, conversation = responses.Thread(other)
		require.Equal(t, "", previous+conversation)
	}
}
