// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/messages"
)

func TestNothingFollowsTheEnd(t *testing.T) {
	streamtest.CheckEnd(t, func() streamtest.Writer {
		return messages.NewStream(messages.StreamOptions{ID: "msg_1", Model: "m"})
	})
}
