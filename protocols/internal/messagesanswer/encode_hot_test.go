// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestShortWay(t *testing.T) {
	streamtest.CheckShortWay(t, func(wholeCalls bool) streamtest.Writer {
		return messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m", WholeCalls: wholeCalls})
	})
}
