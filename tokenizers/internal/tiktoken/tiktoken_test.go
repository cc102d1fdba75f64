// SPDX-License-Identifier: Apache-2.0

package tiktoken_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/internal/tiktoken"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// file prints a rank file: the 256 bytes, then tokens.
func file(tokens ...string) string {
	var s strings.Builder
	for b := range 256 {
		fmt.Fprintf(&s, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	for i, t := range tokens {
		fmt.Fprintf(&s, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(t)), 256+i)
	}
	return s.String()
}

func Example() {
	v, err := tiktoken.Parse([]byte(file("th", "he", "the")))
	if err != nil {
		panic(err)
	}
	merges, err := tiktoken.Merges(v)
	if err != nil {
		panic(err)
	}
	for _, m := range merges {
		fmt.Printf("%q %q -> %d\n", v.Bytes(m.A), v.Bytes(m.B), m.To)
	}
	// Output:
	// "t" "h" -> 256
	// "h" "e" -> 257
	// "t" "he" -> 258
	// "th" "e" -> 258
}

func TestParse(t *testing.T) {
	long := base64.StdEncoding.EncodeToString(make([]byte, tiktoken.MaxToken+1))
	for _, c := range []struct {
		name, file string
		want       string // of the error; none if empty
		kind       error
	}{
		{"plain", "YQ== 0\nYg== 1\n", "", nil},
		{"no line end", "YQ== 0\nYg== 1", "", nil},
		{"CRLF, empty lines", "YQ== 0\r\n\r\n\nYg== 7\r\n", "", nil},
		{"unused token", "YQ== 0\n= 1\n", "", nil},
		{"any order", "YQ== 5\nYg== 1\n", "", nil},
		{"nothing", "", "line 1: no tokens (offset 0)", nil},
		{"only lines", "\n\n", "line 2: no tokens (offset 2)", nil},
		{"cut in the token", "YQ== 0\nYg=", "line 2: ends without a rank (offset 10)", nil},
		{"cut before the rank", "YQ== 0\nYg== ", `line 2: "" is not a rank (offset 12)`, nil},
		{"no base64", "YQ== 0\nY*== 1\n", "line 2: is not base64 (offset 8)", nil},
		{"no padding", "YQ== 0\nYg 1\n", "line 2: is not base64 (offset 7)", nil},
		{"line end inside", "YQ=\r= 0\n", "line 1: is not base64 (offset 3)", nil},
		{"stray bits", "YR== 0\n", "line 1: is not base64 (offset 2)", nil},
		{"unused tokens only", "= 0\n", "line 1: no tokens (offset 4)", nil},
		{"unused token without a rank", "= a\n", `line 1: "a" is not a rank (offset 2)`, nil},
		{"empty token", " 0\n", "line 1: is an empty token (offset 0)", nil},
		{"negative", "YQ== -1\n", `line 1: "-1" is not a rank (offset 5)`, nil},
		{"fraction", "YQ== 1.0\n", `line 1: "1.0" is not a rank (offset 5)`, nil},
		{"two spaces", "YQ==  1\n", `line 1: " 1" is not a rank (offset 5)`, nil},
		{"three fields", "YQ== 1 2\n", `line 1: "1 2" is not a rank (offset 5)`, nil},
		{"huge rank", "YQ== 99999999999999999999999999\n", `line 1: "99999999999999999999" is not a rank (offset 5)`, nil},
		{"large rank", "YQ== 4294967296\n", "line 1: rank 4294967296, the limit is 2097151 (offset 5)", tiktoken.ErrLimit},
		{"rank twice", "YQ== 1\nYg== 1\n", "line 2: rank 1 appears twice (offset 12)", nil},
		{"token twice", "YQ== 0\nYg== 1\nYQ== 2\n", "line 3: is a token that appears twice (offset 14)", nil},
		{"long token", long + " 0\n", "line 1: a token of more than 1024 bytes (offset 0)", tiktoken.ErrLimit},
		{"JSON", `{"model": 1}`, `line 1: is not base64 (offset 0)`, nil},
		{"SentencePiece", "\n\x0e\n\x05<unk>\x15\x00", "line 2: ends without a rank (offset 2)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tiktoken.Parse([]byte(c.file))
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e, ok := errors.AsType[*tiktoken.Error](err)
			if !ok || e.Err != c.kind {
				t.Fatalf("got %v", err)
			}
			if got := strings.TrimPrefix(err.Error(), "tiktoken: "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// encode is byte_pair_encode as tiktoken defines it, without any speed.
func encode(v *vocab.Table, w string) []uint32 {
	if id, ok := v.Lookup(w); ok {
		return []uint32{id}
	}
	var parts []string
	for i := range len(w) {
		parts = append(parts, w[i:i+1])
	}
	for {
		best, at := ^uint32(0), -1
		for i := 0; i+1 < len(parts); i++ {
			if id, ok := v.Lookup(parts[i] + parts[i+1]); ok && id < best {
				best, at = id, i
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	var ids []uint32
	for _, p := range parts {
		id, _ := v.Lookup(p)
		ids = append(ids, id)
	}
	return ids
}

// The list of merges gives what the ranks mean: 3,000 vocabularies of tokens joined from earlier ones, over few
// letters, so that tokens have many splits and equal ranks meet.
func TestMergesRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	rounds := testsize.Pick(30, 200, 3000)
	for range rounds {
		pool := []string{"a", "b"}
		for len(pool) < 14 {
			s := pool[r.IntN(len(pool))] + pool[r.IntN(len(pool))]
			if len(s) <= 8 && !slices.Contains(pool, s) {
				pool = append(pool, s)
			}
		}
		v, m := model(t, file(pool[2:]...))
		var st bpe.State
		for range 40 {
			var w string
			for range 3 + r.IntN(20) {
				w += pool[r.IntN(2+r.IntN(3))]
			}
			if got, want := m.Append(nil, w, 0, len(w), &st), encode(v, w); !slices.Equal(got, want) {
				t.Fatalf("tokens %q, word %q: got %v, want %v", pool, w, got, want)
			}
		}
	}
}

func model(tb testing.TB, file string) (*vocab.Table, *bpe.Model) {
	tb.Helper()
	v, err := tiktoken.Parse([]byte(file))
	if err != nil {
		tb.Fatal(err)
	}
	merges, err := tiktoken.Merges(v)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := bpe.New(v, merges, bpe.Options{IgnoreMerges: true})
	if err != nil {
		tb.Fatal(err)
	}
	return v, m
}

// shared returns a directory of the published tokenizers.
func shared(tb testing.TB, name string) string {
	if testing.Short() {
		tb.Skip("published tokenizers are not for -short")
	}
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	dir := filepath.Join(root, "tok", name)
	if _, err := os.Stat(dir); err != nil {
		tb.Skip("no published tokenizers: set WEFT_SHARED: ", err)
	}
	return dir
}

// The published files: merges equal those that Hugging Face's converter wrote into tokenizer.json, and words get the
// ids that ranks mean.
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		name   string
		merges bool // tokenizer.json has all merges, not one for each token
	}{{"gpt-oss", true}, {"glm-4.5", true}, {"kimi-k2", true}, {"phi-4", false}} {
		t.Run(c.name, func(t *testing.T) {
			dir := shared(t, c.name)
			data, err := os.ReadFile(filepath.Join(dir, "tiktoken.model"))
			if err != nil {
				t.Fatal(err)
			}
			v, m := model(t, string(data))
			if data, err = os.ReadFile(filepath.Join(dir, "tokenizer.json")); err != nil {
				t.Fatal(err)
			}
			var f struct {
				Model struct {
					Vocab  map[string]uint32
					Merges []json.RawMessage
				}
			}
			if err := json.Unmarshal(data, &f); err != nil {
				t.Fatal(err)
			}
			if len(f.Model.Vocab) != v.Count() {
				t.Fatalf("%d tokens, want %d", v.Count(), len(f.Model.Vocab))
			}
			for s, id := range f.Model.Vocab {
				if b, ok := bytelevel.Decode(nil, []byte(s)); !ok || string(v.Bytes(id)) != string(b) {
					t.Fatalf("token %d is %q, want %q", id, v.Bytes(id), b)
				}
			}
			merges, err := tiktoken.Merges(v)
			if err != nil {
				t.Fatal(err)
			}
			if c.merges {
				if len(merges) != len(f.Model.Merges) {
					t.Fatalf("%d merges, want %d", len(merges), len(f.Model.Merges))
				}
				for i, raw := range f.Model.Merges {
					var pair []string
					if raw[0] == '"' {
						var s string
						_ = json.Unmarshal(raw, &s) // it was valid as a whole
						pair = strings.Split(s, " ")
					} else {
						_ = json.Unmarshal(raw, &pair)
					}
					if g := merges[i]; f.Model.Vocab[pair[0]] != g.A || f.Model.Vocab[pair[1]] != g.B {
						t.Fatalf("merge %d is %v, want %q", i, g, pair)
					}
				}
			}
			r := rand.New(rand.NewPCG(2, 3))
			var st bpe.State
			for range 20_000 {
				var w string
				for range 1 + r.IntN(4) {
					w += strings.Repeat(string(v.Bytes(uint32(r.IntN(v.Len())))), 1+r.IntN(2))
				}
				if got, want := m.Append(nil, w, 0, len(w), &st), encode(v, w); !slices.Equal(got, want) {
					t.Fatalf("%q: got %v, want %v", w, got, want)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("YQ== 0\nYg== 1\nYWI= 2\n"))
	f.Add([]byte(file("th", "the")))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := tiktoken.Parse(data)
		if err != nil {
			e, ok := errors.AsType[*tiktoken.Error](err)
			if !ok || e.Offset < 0 || e.Offset > int64(len(data)) || e.Line < 1 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		merges, err := tiktoken.Merges(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range merges {
			if string(v.Bytes(m.A))+string(v.Bytes(m.B)) != string(v.Bytes(m.To)) {
				t.Fatalf("%v", m)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(shared(b, "gpt-oss"), "tiktoken.model"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		v, err := tiktoken.Parse(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tiktoken.Merges(v); err != nil {
			b.Fatal(err)
		}
	}
}
