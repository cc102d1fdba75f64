// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestNothingFollowsTheEnd(t *testing.T) {
	streamtest.CheckEnd(t, func() streamtest.Writer {
		return chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m"})
	})
}
