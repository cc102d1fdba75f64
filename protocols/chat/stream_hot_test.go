// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestShortWay(t *testing.T) {
	streamtest.CheckShortWay(t, func(wholeCalls bool) streamtest.Writer {
		return chat.NewStream(chat.StreamOptions{ID: "chatcmpl-1", Model: "m", WholeCalls: wholeCalls})
	})
}
