// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tokenizers"
)

// TestLiveTokenizers compares ids with Hugging Face's, for real tokenizers from public packages. testdata/live/tokenids.py
// makes the directory; ".ci/live tokenizers" runs both.
func TestLiveTokenizers(t *testing.T) {
	dir := os.Getenv("WEFT_LIVE_TOKENIZERS")
	if dir == "" {
		t.Skip("needs the files of testdata/live/tokenids.py (set WEFT_LIVE_TOKENIZERS, or run .ci/live tokenizers)")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "ids.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			tok, err := tokenizers.Load(os.DirFS(filepath.Dir(file)), nil)
			require.NoError(t, err)
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 1<<20)
			n := 0
			for ; lines.Scan(); n++ {
				var want struct {
					Text string
					IDs  []uint32
				}
				require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
				if got := tok.AppendEncode([]uint32{}, want.Text); !slices.Equal(got, want.IDs) {
					t.Fatalf("%q: %d, Hugging Face has %d", want.Text, got, want.IDs)
				}
			}
			require.NoError(t, lines.Err())
			require.NotZero(t, n)
			t.Logf("%d texts", n)
		})
	}
}
