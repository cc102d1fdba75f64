// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sameScan checks that ScanNext returns what Scan returns, and that what it copied is the same in both documents. It
// returns the number of copied values.
func sameScan(t *testing.T, prev *Doc, body []byte, lim Limits) int {
	t.Helper()
	want, wantErr := Scan(body, lim)
	got, copies, err := scanNext(prev, body, lim)
	if diff := cmp.Diff(wantErr, err); diff != "" {
		t.Fatalf("%s\n%s\n%s", prev.Body(), body, diff)
	}
	if err != nil {
		return 0
	}
	if !slices.Equal(want.list(), got.list()) {
		t.Fatalf("%s\n%s\n%s", prev.Body(), body, cmp.Diff(want.list(), got.list(), cmp.AllowUnexported(node{})))
	}
	if got.Escaped() != want.Escaped() || got.depth != want.depth {
		t.Fatalf("%s\n%s\n%d bytes in escaped strings, want %d", prev.Body(), body, got.Escaped(), want.Escaped())
	}
	if copies == nil {
		return 0
	}
	n := 0
	for i := range got.count {
		v := got.At(i)
		c, ok := copies.Lookup(v)
		if !ok {
			continue
		}
		n++
		if !bytes.Equal(c.Was.Raw(), v.Raw()) || c.Index(c.Was.Index()) != i {
			t.Fatalf("%s\n%s\n%s is not a copy of %s", prev.Body(), body, v.Raw(), c.Was.Raw())
		}
	}
	sameText(t, prev, got, copies.runs)
	values := 0
	for _, r := range copies.runs {
		values += int(r.to - r.from)
	}
	if n != values || copies.Fresh() < 0 || copies.Fresh() > got.Escaped() {
		t.Fatalf("%d copied values, want %d; %d of %d bytes are not copied", values, n, copies.Fresh(), got.Escaped())
	}
	return n
}

// sameText checks that a document has the same bytes if it shares the memory of the earlier one.
func sameText(t *testing.T, prev, d *Doc, runs []run) {
	t.Helper()
	body := d.body
	shared := *d
	if !shared.share(&prev.text, runs, body, 1) {
		return
	}
	if !bytes.Equal(shared.Append(nil), body) || !bytes.Equal(shared.Body(), body) || shared.Size() != len(body) {
		t.Fatalf("%s\n%s\nthe text became %s", prev.Body(), body, shared.Body())
	}
	for i := range d.count {
		if v, got := d.At(i), shared.At(i); got.RawStr() != v.RawStr() || got.Key() != v.Key() {
			t.Fatalf("%s\n%s\n%s: %s became %s: %s", prev.Body(), body, v.Key(), v.Raw(), got.Key(), got.Raw())
		}
	}
	for _, other := range [][]byte{body, prev.Body(), body[1:], append(bytes.Clone(body), ' '), nil} {
		front, end := shared.Common(other)
		n := min(len(body), len(other))
		if front != common(body, other) || end != commonEnd(body[len(body)-(n-front):], other[len(other)-(n-front):]) {
			t.Fatalf("%s\n%s\n%d and %d bytes in common", body, other, front, end)
		}
	}
	// The next document shares the pieces.
	next := slices.Concat([]byte("["), body, []byte(",1]"))
	lim := testLimits
	lim.Depth = 1 << 20
	want, err := Scan(next, lim)
	if err != nil {
		t.Fatal(err)
	}
	got, copies, err := scanNext(&shared, next, lim)
	if err != nil || !slices.Equal(want.list(), got.list()) {
		t.Fatalf("%v\n%s\n%s", err, body, cmp.Diff(want.list(), got.list(), cmp.AllowUnexported(node{})))
	}
	if copies != nil && got.share(&shared.text, copies.runs, next, 1) && !bytes.Equal(got.Body(), next) {
		t.Fatalf("%s became %s", next, got.Body())
	}
}

// TestScanNext checks which values are copied.
func TestScanNext(t *testing.T) {
	deep := testLimits
	deep.Depth = 3
	for _, x := range []struct {
		name, prev, body string
		copied           int // number of nodes
	}{
		{"all", ` {"a":[1,{"b":"c"}]}`, `{"a":[1,{"b":"c"}]} `, 5},
		{"none", `{"a":"x"}`, `["y"]`, 0},
		{"a field", `{"a":"x","b":["y"]}`, `{"a":"z","b":["y"]}`, 2},
		{"fields in another order", `{"a":["x"],"b":["y"]}`, `{"b":["y"],"a":["x"]}`, 4},
		{"the same name only", `{"a":["x"]}`, `{"b":["x"]}`, 0},
		{"white space between", `{"a":["x"],"b":["y"]}`, "{\"a\": [\"x\"],\n \"b\":[\"y\"]}", 4},
		{"appended", `[["a"],["b"]]`, `[["a"],["b"],["c"]]`, 4},
		{"appended to a number", `[["a"],1]`, `[["a"],12]`, 2},
		{"followed by a number", `[["a"],1,2]`, `[["a"],1,3]`, 3},
		{"inserted in front", `[["a"],["b"]]`, `[["c"],["a"],["b"]]`, 4},
		{"inserted in the middle", `[["a"],["b"]]`, `[["a"],["c"],["d"],["b"]]`, 4},
		{"inserted, and the end differs", `[["a"],["b"],["c"]]`, `[["a"],["x"],["y"],["b"],["z"]]`, 4},
		{"removed", `[["a"],["b"],["c"],["d"]]`, `[["a"],["d"]]`, 4},
		{"removed, and the end differs", `[["a"],["b"],["c"],["d"],["e"]]`, `[["a"],["d"],["x"]]`, 4},
		{"changed", `[["a"],["b"],["c"]]`, `[["a"],["bb"],["c"]]`, 4},
		{"inside", `{"m":[{"r":"u","c":["a","b"]},["d"]]}`, `{"m":[{"r":"u","c":["a","x"]},["d"]]}`, 4},
		{"empty containers", `[{},[],{"a":[]}]`, `[{},[],{"a":{}}]`, 2},
		{"opaque", `{"schema":{"a":"x"},"b":"y"}`, `{"schema":{"a":"z"},"b":"y"}`, 1},
		{"the whole opaque value", `{"schema":{"a":"x"},"b":"y"}`, `{"schema":{"a":"x"},"b":"z"}`, 1},
		{"escapes", `{"a\n":"b\n","c":""}`, `{"a\n":"b\n","c":"d"}`, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			lim := testLimits
			lim.Opaque = func(key []byte, _ int) bool { return string(key) == "schema" }
			prev, err := Scan([]byte(x.prev), lim)
			if err != nil {
				t.Fatal(err)
			}
			if n := sameScan(t, prev, []byte(x.body), lim); n != x.copied {
				t.Errorf("%d values were copied, want %d", n, x.copied)
			}
			for n := range 8 {
				small := lim
				small.Values = n + 1
				sameScan(t, prev, []byte(x.body), small)
				small = lim
				small.Depth = n + 1
				sameScan(t, prev, []byte(x.body), small)
				small = lim
				small.Bytes = len(x.body) - n
				sameScan(t, prev, []byte(x.body), small)
			}
		})
	}
}

// TestScanNextEdits scans random documents after random changes of their bytes.
func TestScanNextEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	copied, rounds := 0, 3000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		prev := appendRandom(nil, r, 0)
		doc, err := Scan(prev, testLimits)
		if err != nil {
			continue // a name occurs twice
		}
		body := bytes.Clone(prev)
		for range r.IntN(4) {
			i := r.IntN(len(body))
			switch r.IntN(10) {
			case 0: // damage
				body[i] = `{}[]",:\1`[r.IntN(9)]
			case 2: // repeat a part
				k := i + r.IntN(len(body)-i)
				body = append(append(body[:k:k], body[i:k]...), body[k:]...)
			case 3: // remove a part
				k := i + r.IntN(len(body)-i)
				body = append(body[:i:i], body[k:]...)
			default: // a value in the place of another
				at := doc.At(r.IntN(doc.Values()))
				off, end := at.Span()
				if string(body) != string(prev) {
					break
				}
				body = append(append(body[:off:off], appendRandom(nil, r, 2)...), prev[end:]...)
			}
			if len(body) == 0 {
				body = []byte(" ")
			}
		}
		lim := testLimits
		if r.IntN(4) == 0 {
			lim.Values, lim.Depth = 1+r.IntN(20), 1+r.IntN(5)
		}
		copied += sameScan(t, doc, body, lim)
	}
	if copied < 33*rounds {
		t.Errorf("only %d values were copied", copied)
	}
}

// appendRandom appends a random value. Few different ones are likely, so that equal values occur at several positions.
func appendRandom(dst []byte, r *rand.Rand, depth int) []byte {
	space := func() {
		if r.IntN(20) == 0 {
			dst = append(dst, ' ')
		}
	}
	switch k := r.IntN(8); {
	case k < 3 && depth < 5 || depth == 0:
		dst = append(dst, '[')
		for i := range r.IntN(4 + 20/(depth+1)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			space()
			dst = appendRandom(dst, r, depth+1)
			space()
		}
		return append(dst, ']')
	case k < 5 && depth < 5:
		dst = append(dst, '{')
		for i := range r.IntN(6) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = fmt.Appendf(dst, `"%c"`, 'a'+2*i+r.IntN(2))
			space()
			dst = append(dst, ':')
			dst = appendRandom(dst, r, depth+1)
		}
		return append(dst, '}')
	case k == 5:
		return fmt.Appendf(dst, "%d", r.IntN(120))
	case k == 6:
		return append(dst, "true"...)
	}
	return append(dst, []string{`"text"`, `""`, `"a\n"`, `"other text"`, `"\u00e9"`}[r.IntN(5)]...)
}

// TestScanNextChain scans documents that change at random again and again, and share the memory of earlier ones.
func TestScanNextChain(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	rounds := 800
	if testing.Short() {
		rounds = 200
	}
	var list []string
	element := func() string {
		return fmt.Sprintf(`{"k%d":"%s","e":["%s\n",%d]}`, r.IntN(3), strings.Repeat("a", r.IntN(300)), strings.Repeat("é", r.IntN(20)), r.IntN(9))
	}
	var doc *Doc
	shared, most := 0, 0
	for range rounds {
		switch i := r.IntN(len(list) + 1); {
		case len(list) == 0 || r.IntN(3) > 0 && len(list) < 3000:
			list = append(list, element())
		case r.IntN(400) == 0:
			list = list[i:]
		case i == len(list) || r.IntN(3) == 0:
			list = slices.Insert(list, i, element())
		case r.IntN(2) == 0:
			list = slices.Delete(list, i, i+1)
		default:
			list[i] = element()
		}
		body := []byte(`{"model":"m","list":[` + strings.Join(list, ",") + `],"tools":"` + strings.Repeat("t", 999) + `"}`)
		want, err := Scan(body, testLimits)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		next, _, err := ScanNext(doc, body, testLimits)
		clear(body) // the document does not refer to it
		if err != nil || !slices.Equal(want.list(), next.list()) || string(next.Append(nil)) != text {
			t.Fatalf("%v\n%s became\n%s", err, text, next.Append(nil))
		}
		for range 9 {
			if v := next.At(r.IntN(next.Values())); v.Kind() == String {
				if off, end := v.Span(); v.RawStr() != text[off:end] {
					t.Fatalf("%s became %s", text[off:end], v.RawStr())
				}
			}
		}
		if next.pieces != nil {
			shared, most = shared+1, max(most, len(next.pieces))
		}
		if next.held > len(text)+len(text)/4+64<<10 {
			t.Fatalf("a document of %d bytes refers to %d", len(text), next.held)
		}
		doc = next
	}
	if shared < rounds*9/10 || most < 20 {
		t.Errorf("%d of %d documents shared memory, in at most %d pieces", shared, rounds, most)
	}
}

// TestScanNextNames checks that a name that occurs twice is found among copied fields.
func TestScanNextNames(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"x":[]`)
	for i := range 100 {
		fmt.Fprintf(&b, `,"k%d":{"a":%d}`, i, i)
	}
	prev, err := Scan([]byte(b.String()+"}"), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{`,"k7":1}`, `,"\u006b7":{"a":7}}`, `,"k100":1}`, `,"x":[],"k3":1}`} {
		sameScan(t, prev, []byte(b.String()+more), testLimits)
	}
}

// BenchmarkScanNext compares scans with the help of a document with a scan without, also if nothing fits.
func BenchmarkScanNext(b *testing.B) {
	const n = 1 << 15
	list := func(first, each string) []byte { return []byte("[" + first + strings.Repeat(","+each, n) + "]") }
	nest := func(s string) []byte {
		return []byte(strings.Repeat(`["aaaaaaaaaaaaaaaa",`, 100) + string(list("1", s)) + strings.Repeat("]", 100))
	}
	for _, x := range []struct {
		name       string
		prev, body []byte
	}{
		{"same", list(`["b"]`, `["aaaa",1]`), list(`["b"]`, `["aaaa",1]`)},
		{"shifted", list(`["b"]`, `["aaaa"]`), list(`["bb"]`, `["aaaa"]`)},
		{"others", list(`["b"]`, `["aaaa"]`), list(`["c"]`, `["aaab"]`)},
		{"nested", nest(`"x"`), nest(`"y"`)},
	} {
		doc, err := Scan(x.prev, testLimits)
		if err != nil {
			b.Fatal(err)
		}
		for name, prev := range map[string]*Doc{"plain": nil, "next": doc} {
			b.Run("body="+x.name+"/scan="+name, func(b *testing.B) {
				b.SetBytes(int64(len(x.body)))
				for b.Loop() {
					if _, _, err := ScanNext(prev, x.body, testLimits); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func FuzzScanNext(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`)
	f.Add(`[["a"],["b"],["c"]]`, `[["x"],["a"],["c"]]`)
	f.Add(`{"a":{"b":"c"},"d":1}`, `{"a":{"b":"c"},"d":12,"a":1}`)
	f.Fuzz(func(t *testing.T, prev, body string) {
		lim := testLimits
		lim.Opaque = func(key []byte, depth int) bool { return string(key) == "a" && depth > 1 }
		if doc, err := Scan([]byte(prev), lim); err == nil {
			sameScan(t, doc, []byte(body), lim)
			sameScan(t, doc, []byte(prev), lim)
		}
	})
}

// list returns the nodes in one slice.
func (l *nodes) list() []node { return slices.Concat(l.pages...)[:l.count] }
