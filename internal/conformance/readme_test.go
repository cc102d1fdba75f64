// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmePrograms checks that the first program of each library's README is an Example of the module, which is compiled and
// run, and that the README shows its output.
func TestReadmePrograms(t *testing.T) {
	for _, module := range []string{"protocols", "parsers", "tokenizers", "tokenizers/prompt", "kvhash", "router", "router/zmq"} {
		t.Run(module, func(t *testing.T) {
			dir := filepath.Join("..", "..", filepath.FromSlash(module))
			readme := filepath.Join(dir, "README.md")
			var program string
			for _, b := range fences(t, readme) {
				if b.lang == "go" {
					program = b.text
					break
				}
			}
			require.NotEmpty(t, program, "no program in the README")
			if _, main, ok := strings.Cut(program, "func main() {\n"); ok {
				program, _, _ = strings.Cut(main, "\n}\n")
			}
			want := strings.Join(statements(program), "\n")

			files, err := filepath.Glob(filepath.Join(dir, "example*_test.go"))
			require.NoError(t, err)
			more, err := filepath.Glob(filepath.Join(dir, "*", "example*_test.go"))
			require.NoError(t, err)
			var output string
			found := false
			for _, name := range append(files, more...) {
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				examples := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\nfunc Example")
				for _, e := range examples[1:] {
					body, _, _ := strings.Cut(e, "\n}\n")
					body, out, ok := strings.Cut(body, "// Output:\n")
					if ok && strings.Contains("\n"+strings.Join(statements(body), "\n")+"\n", "\n"+want+"\n") {
						found, output = true, out
					}
				}
			}
			if !found {
				t.Fatalf("no Example with an output has the README's program:\n%s", want)
			}
			data, err := os.ReadFile(readme)
			require.NoError(t, err)
			shown := trimmed(string(data))
			for i, line := range shown {
				if j := strings.Index(line, "// "); j >= 0 {
					line = line[j+len("// "):]
				}
				shown[i] = line
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
