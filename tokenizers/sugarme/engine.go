// SPDX-License-Identifier: Apache-2.0

//go:build !(386 || arm || mips || mipsle)

package sugarme

import (
	"bytes"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"
)

// enginePath begins the names of the engine's functions.
const enginePath = "github.com/sugarme/"

type sugar struct{ t *tokenizer.Tokenizer }

// open builds the engine from the content of tokenizer.json.
func open(data []byte) (engine, error) {
	t, err := pretrained.FromReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return sugar{t}, nil
}

func (s sugar) encode(text string) ([]int, error) {
	e, err := s.t.EncodeSingle(text, false)
	if err != nil {
		return nil, err
	}
	return e.Ids, nil
}
