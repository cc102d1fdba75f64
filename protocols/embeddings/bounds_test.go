// SPDX-License-Identifier: Apache-2.0

package embeddings_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/embeddings"
)

// TestManyMembers changes requests with many unknown fields: twice the fields may take about twice the memory. The
// names are escaped, so that each comparison with one in the body allocates and is counted.
func TestManyMembers(t *testing.T) {
	member := func(i int, value string) string { return fmt.Sprintf(`,"\u006b%d":%s`, i, value) }
	for name, c := range map[string]struct {
		change func(r *embeddings.Request, name string)
		want   func(i int) string
	}{
		"as it was":    {func(*embeddings.Request, string) {}, func(i int) string { return member(i, "1") }},
		"all away":     {func(r *embeddings.Request, name string) { r.Set(name, nil) }, func(int) string { return "" }},
		"other values": {func(r *embeddings.Request, name string) { r.Set(name, []byte("2")) }, func(i int) string { return member(i, "2") }},
		"twice, the last one takes precedence": {func(r *embeddings.Request, name string) {
			r.Set(name, []byte("2"))
			r.Set(name, []byte("3"))
		}, func(i int) string { return member(i, "3") }},
	} {
		t.Run(name, func(t *testing.T) {
			spent := func(n int) uint64 {
				var body, want strings.Builder
				for i := range n {
					body.WriteString(member(i, "1"))
					want.WriteString(c.want(i))
				}
				const head = `{"model":"m","input":"x"`
				r, err := embeddings.Decode([]byte(head+body.String()+`}`), nil)
				require.NoError(t, err)
				for i := range n {
					c.change(r, "k"+strconv.Itoa(i))
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				out := r.AppendJSON(nil)
				runtime.ReadMemStats(&after)
				require.Equal(t, head+want.String()+`}`, string(out))
				return after.TotalAlloc - before.TotalAlloc
			}
			spent(1)
			require.Less(t, spent(2000), 3*spent(1000))
		})
	}
}
