// SPDX-License-Identifier: Apache-2.0

package jsonw_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/internal/jsonw"
)

func TestPairs(t *testing.T) {
	for in, want := range map[string]string{
		`"a\ud83d\ude00b"`:            `"a\ud83d\ude00b"`,
		`"\ud83d"`:                    `"\ufffd"`,
		`"\uD83Dx\uDE00"`:             `"\ufffdx\ufffd"`,
		`"\ude00\ud83d"`:              `"\ufffd\ufffd"`,
		`"\ud83d\ud83d\ude00\ude00"`:  `"\ufffd\ud83d\ude00\ufffd"`,
		`"\ud83d\u0041\ud83d\n"`:      `"\ufffd\u0041\ufffd\n"`,
		`"\\ud83d\\\ud83d\\\\ud83d"`:  `"\\ud83d\\\ufffd\\\\ud83d"`,
		`"\u00e9\n\"\\"`:              `"\u00e9\n\"\\"`,
		`{"\ud83d":"\ud83d\ude00"}`:   `{"\ufffd":"\ud83d\ude00"}`,
		`"\ud83`:                      `"\ud83`, // not complete
		`"\ud83d\`:                    `"\ufffd\`,
		`"\ud83d\ude`:                 `"\ufffd\ude`,
		`"\ud83z\ud83d\udez \ud83d\z`: `"\ud83z\ufffd\udez \ufffd\z`, // not JSON
		`\ud83\ud83d\ude00`:           `\ud83\ud83d\ude00`,
	} {
		require.Equal(t, want, string(jsonw.Paired([]byte(in))), in)
		for size := 1; size <= len(in); size++ { // in pieces
			var p jsonw.Pairs
			var got strings.Builder
			for at := 0; at < len(in); at += size {
				got.Write(p.Next([]byte(in[at:min(at+size, len(in))])))
			}
			held := p.Holds()
			rest := p.Flush()
			require.Equal(t, held, len(rest) > 0)
			require.Equal(t, want, got.String()+string(rest), "%s in pieces of %d", in, size)
		}
	}
}

// TestPairsRead checks that readers that replace lone surrogates read the same as before.
func TestPairsRead(t *testing.T) {
	parts := []string{`\ud83d`, `\ude00`, `\uD800`, `\udfff`, `\\`, `\n`, `u`, `d83d`, `a`, `\u0041`, "é"}
	rapid.Check(t, func(rt *rapid.T) {
		in := `"` + strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(rt, "parts"), "") + `"`
		out := jsonw.Paired([]byte(in))
		var want, got string
		require.NoError(rt, json.Unmarshal([]byte(in), &want))
		require.NoError(rt, json.Unmarshal(out, &got))
		require.Equal(rt, want, got)
		require.Equal(rt, string(out), string(jsonw.Paired(out)))
		require.Equal(rt, strings.Count(got, "\ufffd"), strings.Count(string(out), `\ufffd`))
	})
}
