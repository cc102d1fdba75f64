// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/race"
)

// TestHostile decodes bodies that are built to exhaust memory or time. Each returns the error of a limit, or decodes.
// In either case memory is limited to a small multiple of the body, and nothing recurses.
func TestHostile(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("large bodies")
	}
	bomb := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	tests := []struct {
		name  string
		limit string // "" if it decodes
		lim   block.Limits
		body  func(list string) string
	}{
		{"depth bomb of arrays", "depth", block.Limits{}, func(list string) string { return `{"` + list + `":` + bomb("[", "]", 1<<22) + `}` }},
		{"depth bomb of objects", "depth", block.Limits{}, func(list string) string { return `{"x":` + bomb(`{"a":`, "}", 1<<20) + `,"` + list + `":[]}` }},
		{"depth bomb in a schema", "depth", block.Limits{}, func(list string) string {
			return `{"` + list + `":[],"tools":[{"name":"f","input_schema":` + bomb("[", "]", 1<<20) + `}]}`
		}},
		{"depth allowed", "", block.Limits{Depth: 1 << 20}, func(list string) string { return `{"` + list + `":[],"x":` + bomb("[", "]", 1<<19) + `}` }},
		{"a million tools", "tools", block.Limits{}, func(list string) string {
			return `{"` + list + `":[],"tools":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1_000_000), ",") + `]}`
		}},
		{"a million full tools", "values", block.Limits{}, func(list string) string {
			return `{"` + list + `":[],"tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"function","name":"f"},`, 1_000_000), ",") + `]}`
		}},
		{"a million turns", "values", block.Limits{}, func(list string) string {
			return `{"` + list + `":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 1_000_000), ",") + `]}`
		}},
		{"200,000 turns", "blocks", block.Limits{}, func(list string) string {
			return `{"` + list + `":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 200_000), ",") + `]}`
		}},
		{"a string of 100 MB", "body bytes", block.Limits{}, func(list string) string {
			return `{"` + list + `":[{"role":"user","content":"` + strings.Repeat("a", 100<<20) + `"}]}`
		}},
		{"a string of 100 MB, allowed", "", block.Limits{Body: 1 << 30}, func(list string) string {
			return `{"` + list + `":[{"role":"user","content":"` + strings.Repeat("a", 100<<20) + `"}]}`
		}},
		{"a string of escapes", "", block.Limits{}, func(list string) string {
			return `{"` + list + `":[{"role":"user","content":"` + strings.Repeat(`\u0041`, 1<<20) + `"}]}`
		}},
		{"a long array of numbers", "values", block.Limits{}, func(list string) string {
			return `{"` + list + `":[],"x":[` + strings.Repeat("1,", 1<<21) + `1]}`
		}},
		{"a million names", "values", block.Limits{}, func(list string) string {
			var b strings.Builder
			b.WriteString(`{"` + list + `":[]`)
			for i := range 1 << 20 {
				b.WriteString(`,"n`)
				for k := i; k > 0; k >>= 4 {
					b.WriteByte("0123456789abcdef"[k&15])
				}
				b.WriteString(`":0`)
			}
			return b.String() + "}"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, a := range apis {
				body := []byte(tt.body([]string{"messages", "input", "messages"}[i]))
				if len(body) > 8<<20 && os.Getenv("WEFT_TEST") != "long" {
					t.Skip("set WEFT_TEST=long for bodies over 8 MiB")
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r, err := a.decode(body, &tt.lim)
				runtime.ReadMemStats(&after)
				spent := after.TotalAlloc - before.TotalAlloc
				// The index takes 24 bytes per value, at most twice that while it grows, and the same for names.
				values := min(len(body), max(1<<20, tt.lim.Depth))
				require.Less(t, spent, uint64(4*len(body)+120*values+1<<20), "bytes allocated for %d bytes", len(body))
				if tt.limit == "" {
					require.NoError(t, err)
					out, err := r.AppendBody(nil)
					require.NoError(t, err)
					require.Len(t, out, len(body))
					continue
				}
				be, ok := errors.AsType[*block.Error](err)
				require.True(t, ok, "%v: %v", a.api, err)
				require.Equal(t, block.LimitPassed, be.Kind, "%v", err)
				require.Equal(t, tt.limit, be.Limit, "%v", a.api)
				require.Less(t, len(be.Path), 8<<10)
			}
		})
	}
}
