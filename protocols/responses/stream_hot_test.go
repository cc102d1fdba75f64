// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/responses"
)

func TestShortWay(t *testing.T) {
	streamtest.CheckShortWay(t, func(wholeCalls bool) streamtest.Writer {
		return responses.NewStream(responses.StreamOptions{ID: "resp_1", Model: "m", WholeCalls: wholeCalls})
	})
}
