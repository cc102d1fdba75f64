// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

func scanned(t require.TestingT, text string) jsonscan.Value {
	doc, err := scanOwn([]byte(text))
	require.NoError(t, err)
	return doc.Root()
}

// TestResiduePatch changes one value to another and back with a residue, with few fields and with so many that they are
// looked up in maps.
func TestResiduePatch(t *testing.T) {
	for _, n := range []int{1, manyParts, 4 * manyParts} {
		var was, is strings.Builder
		for i := range n {
			fmt.Fprintf(&was, `"same%d":%d,"spelled%d":[{"a":1}],"empty%d":null,`, i, i, i, i)
			fmt.Fprintf(&is, `"spelled%d":[{"a":1.0,"b":%d}],"same%d":%d,"new%d":%d,`, i, i, i, i, i, i)
		}
		a, b := `{`+was.String()+`"z":0}`, `{`+is.String()+`"z":0}`
		r := diff(scanned(t, a), scanned(t, b))
		require.JSONEq(t, b, string(r.patch([]byte(a), 0)))
		require.Len(t, r.drop, n)
		require.Len(t, r.add, n)
		require.Len(t, r.inner, n)
		// The current value of a field takes precedence over what was dropped, changed and added.
		now := strings.NewReplacer(`null`, `true`, `[{"a":1}]`, `[]`).Replace(a[:len(a)-1]) + `,"new0":"field"}`
		out := scanned(t, string(r.patch([]byte(now), 0)))
		require.Equal(t, `"field"`, out.Get("new0").RawStr())
		require.Equal(t, "true", out.Get("empty0").RawStr())
		require.Equal(t, "[]", out.Get("spelled0").RawStr())
	}
}

// TestResidueLinear computes and applies a residue of two large objects: twice the fields may take about twice the
// memory. The names are escaped, so that each comparison with one allocates and is counted.
func TestResidueLinear(t *testing.T) {
	object := func(n int, also string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"\u006b%d":%d`, i, i)
			if also != "" {
				fmt.Fprintf(&b, `,"\u006b%s%d":[]`, also, i)
			}
		}
		return "{" + b.String()[1:] + "}"
	}
	spent := func(n int) uint64 {
		a, b := object(n, "a"), object(n, "b")
		was, is := scanned(t, a), scanned(t, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := diff(was, is)
		out := r.patch([]byte(a), 0)
		runtime.ReadMemStats(&after)
		require.Len(t, r.drop, n)
		require.Len(t, r.add, n)
		require.JSONEq(t, b, string(out))
		return after.TotalAlloc - before.TotalAlloc
	}
	spent(1)
	require.Less(t, spent(1000), 3*spent(500))
}

// TestDiffDeep compares nested arrays that differ at the innermost level: each level is compared once.
func TestDiffDeep(t *testing.T) {
	const depth = 64
	nested := func(bottom string) string { return strings.Repeat("[", depth) + bottom + strings.Repeat("]", depth) }
	r := diff(scanned(t, nested(`{"a":1}`)), scanned(t, nested(`{"a":1,"b":2}`)))
	require.Equal(t, nested(`{"a":1,"b":2}`), string(r.patch([]byte(nested(`{"a":1}`)), 0)))
	require.Nil(t, diff(scanned(t, nested(`1.0`)), scanned(t, nested(`1e0`))))
}
