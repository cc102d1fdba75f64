// SPDX-License-Identifier: Apache-2.0

package bytelevel

import "testing"

func TestRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for b := range 256 {
		s := Encode(nil, []byte{byte(b)})
		if seen[string(s)] {
			t.Errorf("%q is spelled twice", s)
		}
		seen[string(s)] = true
		if got, ok := Decode(nil, s); !ok || string(got) != string([]byte{byte(b)}) {
			t.Errorf("byte %#x is %q, which is %q", b, s, got)
		}
	}
	for in, want := range map[string]string{" ": "Ġ", "\n": "Ċ", "\t": "ĉ", "é": "Ã©", "\x7f": "ġ", "\xad": "Ń"} {
		if got := string(Encode(nil, []byte(in))); got != want {
			t.Errorf("%q is spelled %q, want %q", in, got, want)
		}
	}
	for _, s := range []string{" ", "a b", "世", "\u00ad", "\xff", "\u0144"} {
		if got, ok := Decode([]byte("x"), []byte(s)); ok || string(got) != "x" {
			t.Errorf("%q decodes to %q", s, got)
		}
	}
}
