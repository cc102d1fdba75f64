// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestNothingFollowsTheEnd(t *testing.T) {
	streamtest.CheckEnd(t, func() streamtest.Writer {
		return completions.NewStream(completions.StreamOptions{ID: "cmpl-1", Model: "m"})
	})
}
