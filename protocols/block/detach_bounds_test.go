// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
)

// TestDetachLinear detaches and encodes bodies with objects of many fields: twice the fields may take about twice the
// memory. The names are escaped, so that each comparison with one allocates and is counted.
func TestDetachLinear(t *testing.T) {
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"\u006b%d":%d`, i, i)
		}
		return b.String()
	}
	tests := []struct {
		name string
		body func(n int) string
	}{
		{"a format that is written as it was", func(n int) string {
			return `{"model":"m","messages":[],"tools":[{"type":"custom","custom":{"name":"x","format":{"type":"text"` + members(n) + `}}}]}`
		}},
		{"unknown members", func(n int) string {
			return `{"model":"m","messages":[{"role":"user","content":"x"` + members(n) + `}],"extra":{"a":1` + members(n) + `}}`
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spent := func(n int) uint64 {
				body := []byte(tt.body(n))
				r, err := chat.Decode(body, nil)
				require.NoError(t, err)
				r.Turns() // derives the values that are computed on demand
				var out []byte
				b := allocated(func() {
					require.NoError(t, r.Detach())
					out, err = r.AppendBody(nil)
				})
				require.NoError(t, err)
				require.JSONEq(t, tt.body(n), string(out))
				return b
			}
			spent(10)
			require.Less(t, spent(2000), 3*spent(1000))
		})
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
