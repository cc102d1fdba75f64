// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-go/weft/internal/require"
)

func TestFinder(t *testing.T) {
	const n = 2 * manySearches
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"\u006b%d":%d`, i, i)
	}
	doc, err := Scan([]byte("{"+b.String()[1:]+"}"), Limits{Bytes: 1 << 20, Depth: 4, Values: 1 << 10})
	require.NoError(t, err)
	f := NewFinder(doc.Root())
	for i := range n {
		require.Equal(t, i > manySearches, f.index != nil, "a map only after many searches")
		require.Equal(t, strconv.Itoa(i), f.Get("k"+strconv.Itoa(i)).RawStr())
	}
	require.False(t, f.Get("none").Exists())

	for _, v := range []Value{{}, doc.Root().Get("k1")} {
		f := NewFinder(v)
		for range n {
			require.False(t, f.Get("k1").Exists())
		}
	}
	list, err := Scan([]byte(`[1,2]`), Limits{Bytes: 10, Depth: 4, Values: 10})
	require.NoError(t, err)
	f = NewFinder(list.Root())
	for range n {
		require.False(t, f.Get("").Exists())
	}
}
