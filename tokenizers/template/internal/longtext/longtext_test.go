// SPDX-License-Identifier: Apache-2.0

package longtext_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/template/internal/longtext"
)

// TestGrow grows a text, with branches, and checks that no text changes.
func TestGrow(t *testing.T) {
	first := longtext.Extend(nil, 0, []byte("abc"))
	second := longtext.Extend(first, 0, []byte("abcdef"))
	branch := longtext.Extend(first, 0, []byte("abcxyz"))
	other := longtext.Extend(second, 0, []byte("ab"))
	long := longtext.Extend(second, 0, []byte("abcdef"+strings.Repeat("g", 1<<14)))
	want := []string{"abc", "abcdef", "abcxyz", "ab", "abcdef" + strings.Repeat("g", 1<<14)}
	if got := []string{first.String(), second.String(), branch.String(), other.String(), long.String()}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	room := longtext.Extend(nil, 0, []byte("abc"))
	if grown := longtext.Extend(room, 0, []byte("abcd")); unsafe.StringData(grown.String()) != unsafe.StringData(room.String()) {
		t.Error("the longer text is not in the memory of the shorter one")
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			text, want := first, "abc"
			for range 200 {
				want += strings.Repeat(string(rune('a'+i)), 7)
				text = longtext.Extend(text, 0, []byte(want))
				if text.String() != want {
					t.Errorf("got %q, want %q", text, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestKeep keeps texts in the memory in which they were written, unless much of it is unused.
func TestKeep(t *testing.T) {
	for _, c := range []struct {
		size, room int
		same       bool
	}{{0, 1, true}, {3, 3, true}, {1 << 16, 1 << 16, true}, {3 << 15, 1 << 16, true}, {1 << 12, 1 << 16, false}} {
		b := append(longtext.Room(c.room), bytes.Repeat([]byte("x"), c.size)...)
		text := longtext.Keep(b)
		if got := text.String(); got != strings.Repeat("x", c.size) || c.size > 0 && (unsafe.StringData(got) == &b[0]) != c.same {
			t.Errorf("%d bytes with room for %d: a text of %d bytes, not in that memory or wrongly so", c.size, c.room, len(got))
		}
		if n := text.Bytes(); n < c.size || n > c.size+c.size/2+8192+c.size/8 {
			t.Errorf("%d bytes with room for %d take %d bytes", c.size, c.room, n)
		}
		if grown := longtext.Extend(text, c.size, []byte("more")); grown.String() != strings.Repeat("x", c.size)+"more" {
			t.Errorf("%d bytes with room for %d, grown: %d bytes", c.size, c.room, len(grown.String()))
		}
	}
}

// TestExtend builds texts from a part of an earlier one and a rest.
func TestExtend(t *testing.T) {
	first := longtext.Extend(nil, 0, []byte("abcdef"))
	grown := longtext.Extend(first, 6, []byte("ghi"))
	branch := longtext.Extend(first, 6, []byte("xyz"))
	front := longtext.Extend(first, 2, []byte("-"))
	none := longtext.Extend(first, 0, nil)
	long := longtext.Extend(grown, 9, bytes.Repeat([]byte("j"), 1<<14))
	want := []string{"abcdef", "abcdefghi", "abcdefxyz", "ab-", "", "abcdefghi" + strings.Repeat("j", 1<<14)}
	if got := []string{first.String(), grown.String(), branch.String(), front.String(), none.String(), long.String()}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if unsafe.StringData(grown.String()) != unsafe.StringData(first.String()) {
		t.Error("the longer text is not in the memory of the shorter one")
	}
	if unsafe.StringData(branch.String()) == unsafe.StringData(first.String()) {
		t.Error("two texts are in the same memory")
	}
}
