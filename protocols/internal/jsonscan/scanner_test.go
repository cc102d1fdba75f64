// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/internal/race"
)

// scanned contains documents that are scanned one after the other.
var scanned = []string{
	`{"a":[1,"x\ny",{"\u0062":null}],"c":true}`, `[`, `[[[[1]]]]`, `{"a":1,"a":2}`, "\"\xff\"", `"plain"`, `{"k":{"k":{"k":[]}}}`, `[1,2`,
	`{"o":1}`, `{"a":"\ud83d\ude00"}`,
}

// TestScanner checks that results are those of Scan, regardless of previous documents.
func TestScanner(t *testing.T) {
	var s Scanner
	for range 2 {
		for _, body := range scanned {
			want, wantErr := Scan([]byte(body), testLimits)
			got, err := s.Scan([]byte(body), testLimits)
			require.Equal(t, wantErr, err, body)
			if err != nil {
				continue
			}
			require.Equal(t, want.Values(), got.Values())
			require.Equal(t, want.Escaped(), got.Escaped())
			require.Empty(t, cmp.Diff(plain(want.Root()), plain(got.Root())), body)
		}
	}
	_, err := s.Scan([]byte(`[1,2]`), Limits{Bytes: 2, Depth: 1, Values: 1})
	require.Equal(t, "body bytes", err.(*Error).Limit)
	require.NotZero(t, s.d.room)
	s.Trim(1 << 20)
	require.NotZero(t, s.d.room)
	s.Trim(1)
	require.Zero(t, s.d.room)
}

func TestScannerAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var s Scanner
	var buf []byte
	body := []byte(scanned[0])
	run := func() {
		d, err := s.Scan(body, testLimits)
		if err != nil {
			t.Fatal(err)
		}
		a := d.Root().Get("a")
		buf = buf[:0]
		if text, ok := a.Next(a.First()).Text(&buf); !ok || string(text) != "x\ny" {
			t.Fatal(text)
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func TestText(t *testing.T) {
	d, err := Scan([]byte(`["plain","es\"c","\u00e9",7]`), testLimits)
	require.NoError(t, err)
	var buf []byte
	var got []string
	for e := d.Root().First(); e.Exists(); e = d.Root().Next(e) {
		text, ok := e.Text(&buf)
		require.Equal(t, e.Kind() == String, ok)
		got = append(got, string(text))
	}
	require.Equal(t, []string{"plain", `es"c`, "é", ""}, got)
	require.Equal(t, `es"cé`, string(buf), "only strings with escapes are copied")
}
