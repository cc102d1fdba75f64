// SPDX-License-Identifier: Apache-2.0

package vocab_test

import (
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// Put writes a token whole, regardless of the room left, and never writes beyond it.
func TestPut(t *testing.T) {
	var b vocab.Builder
	tokens := []string{"a", "", "four", strings.Repeat("x", 16), strings.Repeat("y", 17), "last"}
	for id, s := range tokens {
		if err := b.Add(uint32(id), []byte(s), s != ""); err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for id, s := range tokens {
		for extra := range 20 {
			buf := []byte(strings.Repeat("-", len(s)+extra) + "|")
			n := v.Put(buf[:len(s)+extra:len(s)+extra], uint32(id))
			if n != len(s) || n != v.Size(uint32(id)) || string(buf[:n]) != s || buf[len(buf)-1] != '|' {
				t.Errorf("token %q with %d bytes more: %d, %q", s, extra, n, buf)
			}
		}
	}
	if v.Put(make([]byte, 20), 6) != 0 || v.Size(6) != 0 || v.Size(1<<31) != 0 {
		t.Error("an id that is not used has bytes")
	}
}
