// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tokenizers"
)

// realFolder is the first line of a file of folders.py.
type realFolder struct {
	Kind, Package, Hash string
	Options             tokenizers.Options
}

// realText is one of the other lines: what the reference returns for a text. A field is nil if the reference does not
// have it.
type realText struct {
	Of          string
	Error       string // the reference fails
	IDs         []uint32
	Framed      *[]uint32
	Offsets     []int // pairs, in characters
	Text, Plain *string
}

// TestLiveTokenizers loads real folders from public packages and compares them with the libraries they are made for, or
// finds the file and the folder in the error. testdata/live/folders.py makes the directory; ".ci/live tokenizers" runs
// both.
func TestLiveTokenizers(t *testing.T) {
	dir := os.Getenv("WEFT_LIVE_TOKENIZERS")
	if dir == "" {
		t.Skip("needs the files of testdata/live/folders.py (set WEFT_LIVE_TOKENIZERS, or run .ci/live tokenizers)")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	count := map[string]int{}
	distinct := map[string]bool{}
	for _, file := range files {
		path := strings.TrimSuffix(file, ".jsonl")
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 16<<20)
			var folder realFolder
			require.True(t, lines.Scan())
			require.NoError(t, json.Unmarshal(lines.Bytes(), &folder))
			result, texts := "DIFFERENT", 0
			defer func() {
				if distinct[folder.Hash] {
					result += ", a copy"
				} else {
					count[result]++
				}
				distinct[folder.Hash] = true
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", name, folder.Package, folder.Kind, texts, result)
			}()
			tok, err := tokenizers.Load(os.DirFS(path), &folder.Options)
			if strings.HasPrefix(folder.Kind, "refused") {
				require.ErrorContains(t, err, path)
				result = "refused"
				t.Log(err)
				return
			}
			require.NoError(t, err)
			for lines.Scan() {
				var want realText
				require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
				if want.Error != "" {
					continue
				}
				texts++
				if bad := want.check(tok, strings.HasPrefix(folder.Kind, "pieces") || strings.HasPrefix(folder.Kind, "tekken")); bad != "" {
					t.Fatalf("%.200q: %.500s", want.Of, bad)
				}
			}
			require.NoError(t, lines.Err())
			require.NotZero(t, texts)
			result = "exact"
		})
	}
	require.NoError(t, w.Flush())
	t.Logf("%d folders, %d of them distinct: %v\n%s", len(files), len(distinct), count, &table)
}

// check returns what differs. untrusted specifies that the reference does not look for control tokens in texts.
func (want *realText) check(tok *tokenizers.Tokenizer, untrusted bool) string {
	segs := []tokenizers.Segment{{Text: want.Of, Trusted: !untrusted}}
	ids := tok.AppendEncodeSegments([]uint32{}, segs)
	if !slices.Equal(ids, want.IDs) {
		return fmt.Sprintf("ids %d, the reference has %d", ids, want.IDs)
	}
	if want.Framed != nil {
		framed := tok.AppendEncodeSpecial([]uint32{}, want.Of)
		if untrusted {
			before, after := tok.AddedSpecial()
			framed = slices.Concat(before, ids, after)
		}
		if !slices.Equal(framed, *want.Framed) {
			return fmt.Sprintf("ids with special tokens %d, the reference has %d", framed, *want.Framed)
		}
	}
	for _, x := range []struct {
		want *string
		skip bool
	}{{want.Text, false}, {want.Plain, true}} {
		if x.want == nil {
			continue
		}
		if got := string(tok.AppendDecode(nil, ids, x.skip)); got != *x.want {
			return fmt.Sprintf("text %q, the reference has %q", got, *x.want)
		}
	}
	var e tokenizers.Encoding
	if err := tok.Encode(&e, segs, &tokenizers.EncodeOptions{Offsets: true}); err != nil || !slices.Equal(e.IDs, ids) {
		return fmt.Sprintf("ids with offsets %d (%v), without %d", e.IDs, err, ids)
	}
	if want.Offsets == nil {
		return ""
	}
	var got []int
	for _, o := range e.Offsets {
		got = append(got, utf8.RuneCountInString(want.Of[:o.Start]), utf8.RuneCountInString(want.Of[:o.End]))
	}
	if !slices.Equal(got, want.Offsets) {
		return fmt.Sprintf("offsets %d, the reference has %d", got, want.Offsets)
	}
	return ""
}
