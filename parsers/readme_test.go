// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
)

func TestReadmeListsFamilies(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, name := range parsers.Default().Names() {
		require.Contains(t, string(readme), "`"+name+"`")
	}
}
