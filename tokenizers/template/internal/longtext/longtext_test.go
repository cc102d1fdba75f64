// SPDX-License-Identifier: Apache-2.0

package longtext_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tokenizers/template/internal/longtext"
)

// TestNew grows a text, with branches, and checks that no text changes.
func TestNew(t *testing.T) {
	first := longtext.New([]byte("abc"), nil)
	second := longtext.New([]byte("abcdef"), first)
	branch := longtext.New([]byte("abcxyz"), first)
	other := longtext.New([]byte("ab"), second)
	long := longtext.New([]byte("abcdef"+strings.Repeat("g", 1<<14)), second)
	require.Equal(t, []string{"abc", "abcdef", "abcxyz", "ab"}, []string{first.String(), second.String(), branch.String(), other.String()})
	require.Equal(t, "abcdef"+strings.Repeat("g", 1<<14), long.String())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if longtext.New([]byte("abcdefg"), long).String() != "abcdefg" { // not an extension
			t.Error("wrong text")
		}
	})-3) // text, buffer and bytes
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			text, want := first, "abc"
			for range 200 {
				want += strings.Repeat(string(rune('a'+i)), 7)
				text = longtext.New([]byte(want), text)
				if text.String() != want {
					t.Errorf("got %q, want %q", text, want)
				}
			}
		})
	}
	wg.Wait()
}
