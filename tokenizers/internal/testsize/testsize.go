// SPDX-License-Identifier: Apache-2.0

// Package testsize scales tests: -short is quick, the default moderate, and WEFT_TEST=long exhaustive.
package testsize

import (
	"os"
	"testing"
)

// Pick returns short with -short, long with WEFT_TEST=long, and normal otherwise.
func Pick[T any](short, normal, long T) T {
	switch {
	case testing.Short():
		return short
	case os.Getenv("WEFT_TEST") == "long":
		return long
	}
	return normal
}

// Long skips a test that runs only with WEFT_TEST=long.
func Long(tb testing.TB) {
	tb.Helper()
	if !Pick(false, false, true) {
		tb.Skip("exhaustive: set WEFT_TEST=long")
	}
}
