// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestShortWay(t *testing.T) {
	streamtest.CheckShortWay(t, func(wholeCalls bool) streamtest.Writer {
		return chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m", WholeCalls: wholeCalls})
	})
}
