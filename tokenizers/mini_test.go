// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"os"
	"sync"
	"testing"
)

// miniTokenizer returns the small tokenizer of package mini, which cannot be imported from here.
func miniTokenizer(tb testing.TB) *Tokenizer {
	tb.Helper()
	t, err := miniOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

var miniOnce = sync.OnceValues(func() (*Tokenizer, error) { return Load(os.DirFS("mini"), nil) })
