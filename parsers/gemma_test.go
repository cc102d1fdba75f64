// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
)

// A call whose last value has no closing brace after it does not take the next call for its text.
func TestGemmaMissingBrace(t *testing.T) {
	for family, c := range map[string][3]string{
		"gemma4":        {"<|tool_call>call:put{", "<tool_call|>", "<|tool_call>call:now{}<tool_call|>"},
		"functiongemma": {"<start_function_call>call:put{", "<end_function_call>", "<start_function_call>call:now{}<end_function_call>"},
	} {
		for _, args := range []string{"i:1", "i:", "s:a b", "i:1,s:x ", "a:[1,", "o:{i:2"} {
			in := c[0] + args + c[1] + c[2]
			require.Equal(t, "abort \"put\" bad_arguments\ncall now {}\n", assembled(parse(t, family, parsers.Options{}, in)), in)
			checkInvariant(t, family, parsers.Options{}, in)
		}
	}
}
