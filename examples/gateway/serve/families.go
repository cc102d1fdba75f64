// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"sync"

	"github.com/weft-go/weft/tokenizers/prompt"
)

// families holds the model and its variants with other parser families. It is safe for concurrent use by multiple
// goroutines.
type families struct {
	model *prompt.Model // Options.Prompts

	mu    sync.Mutex
	named map[string]*prompt.Model // variants by family
}

// get returns the model with the family called name, or the unchanged model if name is "". Up to maxNamed variants are
// kept.
func (f *families) get(name string) (*prompt.Model, error) {
	if name == "" {
		return f.model, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.named[name]; m != nil {
		return m, nil
	}
	m, err := f.model.WithFamily(name)
	if err == nil && len(f.named) < maxNamed {
		f.named[name] = m
	}
	return m, err
}

// maxNamed limits the number of kept variants. Names can be combined with "+", so clients can create many.
const maxNamed = 256
