// SPDX-License-Identifier: Apache-2.0

//go:build 386 || arm || mips || mipsle

package sugarme

import "github.com/weft-go/weft/tokenizers"

// enginePath begins the names of the engine's functions.
const enginePath = "github.com/sugarme/"

// open fails: the engine (v0.3.0, tokenizer.go) has constants that overflow an int of 32 bits.
func open([]byte) (engine, error) {
	return nil, fail("load", tokenizers.ErrUnsupported, "the engine needs an int of 64 bits")
}
