// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestShortWay(t *testing.T) {
	streamtest.CheckShortWay(t, func(wholeCalls bool) streamtest.Writer {
		return responsesanswer.NewEncoder(responsesanswer.Options{ID: "resp_1", Model: "m", WholeCalls: wholeCalls})
	})
}
