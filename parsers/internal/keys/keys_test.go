// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSet(t *testing.T) {
	var s Set
	require.Nil(t, s.Last())
	for i, k := range []string{"a", "", "ab", "b"} {
		require.False(t, s.Has([]byte(k)))
		require.Equal(t, Added, s.Add([]byte(k), 4))
		require.Equal(t, k, string(s.Last()))
		require.Equal(t, i+1, s.Len())
	}
	require.Equal(t, Known, s.Add([]byte("ab"), 4))
	require.Equal(t, Full, s.Add([]byte("c"), 4))
	require.True(t, s.Has(nil))
	s.Reset()
	require.Zero(t, s.Len())
	require.False(t, s.Has([]byte("a")))
}
