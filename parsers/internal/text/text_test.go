// SPDX-License-Identifier: Apache-2.0

package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhole(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "a": 1, "é": 2, "a\xc3": 1, "東": 3, "\xe6": 0, "a\xe6\x9d": 1, "\xf0\x9f\x97": 0, "🗼": 4, "\x80\x80\x80": 3, "\x80": 1, "\xff": 1, "é\xf0\x9f": 2,
	} {
		require.Equal(t, want, Whole([]byte(s)), "%q", s)
	}
}
