// SPDX-License-Identifier: Apache-2.0

package completionsanswer_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestNothingFollowsTheEnd(t *testing.T) {
	streamtest.CheckEnd(t, func() streamtest.Writer {
		return completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "m"})
	})
}
