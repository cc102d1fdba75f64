// SPDX-License-Identifier: Apache-2.0

package embeddings_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/embeddings"
)

// TestManyMembers changes requests with many unknown members: twice the members may take about twice the memory. Names are
// spelled with an escape, so that each comparison with one in the body allocates and is counted.
func TestManyMembers(t *testing.T) {
	member := func(i int, value string) string { return fmt.Sprintf(`,"\u006b%d":%s`, i, value) }
	for name, c := range map[string]struct {
		change func(m []embeddings.Member) []embeddings.Member
		want   func(i int) string
	}{
		"as it was": {func(m []embeddings.Member) []embeddings.Member { return m }, func(i int) string { return member(i, "1") }},
		"other order": {func(m []embeddings.Member) []embeddings.Member {
			return append(m[len(m)/2:len(m):len(m)], m[:len(m)/2]...)
		}, func(i int) string { return member(i, "1") }},
		"all away": {func([]embeddings.Member) []embeddings.Member { return nil }, func(int) string { return "" }},
		"other values": {func(m []embeddings.Member) []embeddings.Member {
			for i := range m {
				m[i].Value = []byte("2")
			}
			return m
		}, func(i int) string { return member(i, "2") }},
		"new ones": {func(m []embeddings.Member) []embeddings.Member {
			for i := range m {
				m[i].Key = "n" + m[i].Key
			}
			return m
		}, func(i int) string { return fmt.Sprintf(`,"nk%d":1`, i) }},
		"twice, the last one wins": {func(m []embeddings.Member) []embeddings.Member {
			for i := range m {
				m = append(m, embeddings.Member{Key: m[i].Key, Value: []byte("3")})
			}
			return m
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
				r.Extra = c.change(r.Extra)
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
