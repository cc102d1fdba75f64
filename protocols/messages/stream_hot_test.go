// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/messages"
)

func TestShortWay(t *testing.T) {
	streamtest.CheckShortWay(t, func(wholeCalls bool) streamtest.Writer {
		return messages.NewStream(messages.StreamOptions{ID: "msg_1", Model: "m", WholeCalls: wholeCalls})
	})
}
