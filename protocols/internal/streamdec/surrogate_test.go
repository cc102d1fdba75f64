// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// text returns the text of pieces, which are JSON strings.
func text(t require.TestingT, pieces ...string) string {
	var d Doc
	var h Halves
	var out strings.Builder
	for _, p := range pieces {
		v, err := d.Parse([]byte(p), nil)
		require.NoError(t, err, p)
		out.Write(h.Text(&d, v))
	}
	out.Write(h.Flush())
	return out.String()
}

func TestHalves(t *testing.T) {
	for _, c := range []struct {
		want   string
		pieces []string
	}{
		{"a😀!", []string{`"a\ud83d"`, `"\ude00!"`}},
		{"a😀!", []string{`"a\uD83D"`, `""`, `null`, `"\uDE00!"`}},
		{"\uFFFDx", []string{`"\ud83d"`, `"x"`}},
		{"\uFFFD\uFFFD", []string{`"\ud83d"`, `"\ud83d"`}},
		{"\uFFFD", []string{`"\ude00"`}},
		{`\ud83d` + "\uFFFD", []string{`"\\ud83d"`, `"\ude00"`}},
		{`\` + "😀", []string{`"\\\ud83d"`, `"\ude00"`}},
		{"😀😀", []string{`"\ud83d\ude00\ud83d"`, `"\ude00"`}},
		{"\n", []string{`"\n"`}},
	} {
		require.Equal(t, c.want, text(t, c.pieces...), "%q", c.pieces)
	}
	h := Halves{high: 0xD83D}
	h.Drop()
	require.Nil(t, h.Flush())
}

// TestHalvesSplit checks that splitting text between any two UTF-16 units does not change it.
func TestHalvesSplit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("a\\\"\n€😀𝄞"))).Draw(rt, "s")
		pieces, piece := []string(nil), ""
		for _, u := range utf16.Encode([]rune(s)) {
			if utf16.IsSurrogate(rune(u)) {
				piece += fmt.Sprintf(`\u%04x`, u)
			} else {
				raw, err := json.Marshal(string(rune(u)))
				require.NoError(rt, err)
				piece += string(raw[1 : len(raw)-1])
			}
			if rapid.Bool().Draw(rt, "cut") {
				pieces, piece = append(pieces, `"`+piece+`"`), ""
			}
		}
		require.Equal(rt, s, text(rt, append(pieces, `"`+piece+`"`)...))
	})
}
