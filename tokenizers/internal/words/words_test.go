// SPDX-License-Identifier: Apache-2.0

package words

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The cache returns only results that were stored for the word.
func TestCache(t *testing.T) {
	var own Owner
	var c Cache
	c.Bind(&own)
	want := map[string][]uint32{}
	r := rand.New(rand.NewPCG(1, 1))
	found := 0
	for k := range 100000 {
		w := make([]byte, 1+r.IntN(MaxLen))
		for i := range w {
			w[i] = "\x00ab"[r.IntN(3)]
		}
		s := string(w)
		if k%2 == 0 {
			s += "and more text after it"
		}
		ids, lo, hi, ok := c.Append([]uint32{7}, s, 0, len(w))
		if a, b := Key(s, 0, len(w)); a != lo || b != hi {
			t.Fatalf("%q: keys differ", w)
		}
		if ok {
			found++
			if !slices.Equal(ids[1:], want[string(w)]) {
				t.Fatalf("%q is %v, want %v", w, ids[1:], want[string(w)])
			}
			continue
		}
		if want[string(w)] == nil {
			for range 1 + r.IntN(MaxIDs) {
				want[string(w)] = append(want[string(w)], r.Uint32()&FirstMask)
			}
		}
		c.Put(lo, hi, want[string(w)])
	}
	if found < 10000 {
		t.Errorf("only %d found", found)
	}
}

func TestOwners(t *testing.T) {
	var a, b Owner
	var c Cache
	c.Bind(&a)
	lo, hi := Key("word", 0, 4)
	c.Put(lo, hi, []uint32{1})
	c.Put(lo, hi, nil)
	c.Put(lo, hi, make([]uint32, MaxIDs+1))
	if ids, _, _, ok := c.Append(nil, "word", 0, 4); !ok || len(ids) != 1 {
		t.Errorf("%v %t", ids, ok)
	}
	c.Bind(&b)
	if _, _, _, ok := c.Append(nil, "word", 0, 4); ok || c.Serves(&a) || !c.Serves(&b) {
		t.Error("words of another model")
	}
	c.Put(lo, hi, []uint32{2})
	c.Reset()
	if c.Serves(&b) {
		t.Error("serves a model after Reset")
	}
	c.Bind(&a)
	if _, _, _, ok := c.Append(nil, "word", 0, 4); ok {
		t.Error("words of another model after Reset")
	}
}
