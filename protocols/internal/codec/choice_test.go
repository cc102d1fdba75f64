// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
)

// TestCustomNames compares results for few and for many names.
func TestCustomNames(t *testing.T) {
	tools := []block.Tool{
		{Name: "f"}, {Name: "c", Kind: block.CustomTool}, {Name: "both"}, {Name: "both", Kind: block.CustomTool}, {Name: "h", Kind: block.Hosted},
	}
	for _, n := range []int{0, manyNames, manyNames + 1} {
		custom := CustomNames(tools, n)
		for name, want := range map[string]bool{"f": false, "c": true, "both": true, "h": false, "none": false} {
			require.Equal(t, want, custom(name), name)
		}
		if n > manyNames {
			tools[1].Name = "changed"
			require.True(t, custom("c"), "many names must not each search the tools")
		}
	}
}
