// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestReadmePrograms compares the program at the top of each library's README with the Example of its package, which is compiled
// and run: the same lines, and the output in the README.
func TestReadmePrograms(t *testing.T) {
	for _, module := range []string{"protocols", "parsers", "tokenizers", "kvhash", "router"} {
		t.Run(module, func(t *testing.T) {
			read := func(name string) string {
				b, err := os.ReadFile(filepath.Join("..", "..", module, name))
				require.NoError(t, err)
				return strings.ReplaceAll(string(b), "\r\n", "\n")
			}
			_, body, ok := strings.Cut(read("example_test.go"), "\nfunc Example() {\n")
			require.True(t, ok, "no Example")
			body, _, _ = strings.Cut(body, "\n}\n")
			body, output, ok := strings.Cut(body, "// Output:\n")
			require.True(t, ok, "no output")

			readme := read("README.md")
			_, program, ok := strings.Cut(readme, "\n```go\n")
			require.True(t, ok, "no program in the README")
			program, _, _ = strings.Cut(program, "```\n")
			if _, main, ok := strings.Cut(program, "func main() {\n"); ok {
				program, _, _ = strings.Cut(main, "\n}\n")
			}
			code := trimmed(program)
			for len(code) > 0 && strings.HasPrefix(code[len(code)-1], "//") { // its output
				code = code[:len(code)-1]
			}
			if d := cmp.Diff(trimmed(body), code); d != "" {
				t.Errorf("the README's program is not the Example (-Example +README):\n%s", d)
			}
			shown := trimmed(readme)
			for i, line := range shown {
				shown[i] = strings.TrimPrefix(line, "// ")
			}
			for _, line := range trimmed(output) {
				if line = strings.TrimPrefix(line, "// "); !slices.Contains(shown, line) {
					t.Errorf("the README does not show the output %q", line)
				}
			}
		})
	}
}

// trimmed returns the lines of s that are not blank, without the space around them.
func trimmed(s string) (lines []string) {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
