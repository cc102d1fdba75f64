// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// A fenced is a fenced block of a Markdown file.
type fenced struct {
	file, lang, text string
	line             int // of the opening fence, from 1
	end              int // of the closing fence
}

// pages returns the Markdown files of the repository, without the changelog, which quotes what was.
func pages(t *testing.T) (names []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") && d.Name() != "CHANGELOG.md" {
			names = append(names, name)
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(names), 10)
	return names
}

// fences returns the fenced blocks of a file.
func fences(t *testing.T, name string) (blocks []fenced) {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var b *fenced
	for i, line := range strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") {
		lang, mark := strings.CutPrefix(line, "```")
		switch {
		case mark && b == nil:
			b = &fenced{file: name, lang: lang, line: i + 1}
		case mark:
			b.end = i + 1
			blocks = append(blocks, *b)
			b = nil
		case b != nil:
			b.text += line + "\n"
		}
	}
	require.Nil(t, b, "%s: a block without an end", name)
	return blocks
}

// TestReadmeCommands runs each command of a README that reads a text from echo or printf and is followed by its output, and compares the
// two. The output on stderr comes first.
func TestReadmeCommands(t *testing.T) {
	if !long() {
		t.Skip("set WEFT_TEST=long to build the programs")
	}
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	ran := 0
	for _, page := range pages(t) {
		blocks := fences(t, page)
		for i, b := range blocks {
			if b.lang != "" || !strings.HasPrefix(b.text, "echo ") && !strings.HasPrefix(b.text, "printf ") || !strings.Contains(b.text, "go run ./examples/") {
				continue
			}
			if i+1 == len(blocks) || blocks[i+1].line != b.end+1 {
				continue // a server or a program that runs until stopped: TestReadmeFlags
			}
			ran++
			cmd := exec.Command(sh, "-c", b.text)
			cmd.Dir = filepath.Join("..", "..")
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%s:%d: %v: %s", b.file, b.line, err, &stderr)
				continue
			}
			if d := cmp.Diff(blocks[i+1].text, stderr.String()+stdout.String()); d != "" {
				t.Errorf("%s:%d: the output is not that of the command (-README +got):\n%s", b.file, b.line, d)
			}
		}
	}
	require.GreaterOrEqual(t, ran, 4)
}

// The command lines of our programs in code, in a block or between back quotes, and the flags in them.
var (
	program   = regexp.MustCompile(`go run \./examples/(\w+)((?:[ \t]+[^\s|&)` + "`" + `#]+)*)`)
	inlineCmd = regexp.MustCompile("`[^`\n]*`")
	flagName  = regexp.MustCompile(`(?:^|\s)--?([a-z][a-z0-9-]*)`)
)

// TestReadmeFlags sees that the programs that READMEs run exist, and have the flags that are used there.
func TestReadmeFlags(t *testing.T) {
	if !long() {
		t.Skip("set WEFT_TEST=long to build the programs")
	}
	type use struct{ at, flags string }
	uses := map[string][]use{} // by program
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		code := inlineCmd.FindAllString(string(data), -1)
		for _, b := range fences(t, page) {
			code = append(code, b.text)
		}
		for _, text := range code {
			for _, m := range program.FindAllStringSubmatch(text, -1) {
				flags, _, _ := strings.Cut(m[2], " -- ") // what follows is for a program that ours starts
				uses[m[1]] = append(uses[m[1]], use{page, flags})
			}
		}
	}
	require.Contains(t, uses, "gateway")
	dir := t.TempDir()
	for name, list := range uses {
		bin := filepath.Join(dir, name)
		if runtime.GOOS == "windows" {
			bin += ".exe"
		}
		build := exec.Command("go", "build", "-o", bin, "./"+name)
		build.Dir = filepath.Join("..", "..", "examples")
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("%s runs ./examples/%s: %v\n%s", list[0].at, name, err, out)
			continue
		}
		help, _ := exec.Command(bin, "-h").CombinedOutput()
		for _, u := range list {
			for _, f := range flagName.FindAllStringSubmatch(u.flags, -1) {
				if f[1] != "h" && !regexp.MustCompile(`(?m)^  -`+regexp.QuoteMeta(f[1])+`\b`).Match(help) {
					t.Errorf("%s runs ./examples/%s with -%s, which it does not have", u.at, name, f[1])
				}
			}
		}
	}
}

// TestReadmeCode sees that the Go code of each page is in a Go file of the repository, which is compiled: the same lines in the
// same order, apart from comments.
func TestReadmeCode(t *testing.T) {
	var sources []string
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		data, err := os.ReadFile(name)
		sources = append(sources, "\n"+strings.Join(statements(string(data)), "\n")+"\n")
		return err
	}))
	for _, page := range pages(t) {
		for _, b := range fences(t, page) {
			if b.lang != "go" {
				continue
			}
			text := b.text
			if _, body, ok := strings.Cut(text, "func main() {\n"); ok {
				text, _, _ = strings.Cut(body, "\n}\n")
			}
			want := "\n" + strings.Join(statements(text), "\n") + "\n"
			if !slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%s:%d: no Go file has this code", b.file, b.line)
			}
		}
	}
}

// statements returns the lines of code in s, without indentation, blank lines and comments.
func statements(s string) (lines []string) {
	for _, line := range trimmed(s) {
		if i := strings.Index(line, " // "); i >= 0 {
			line = strings.TrimSpace(line[:i])
		}
		if !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestVersionsAgree sees that all pages and comments name the versions of the SDKs that internal/sdk tests.
func TestVersionsAgree(t *testing.T) {
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "internal", "sdk", "go.mod"))
	require.NoError(t, err)
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`github.com/\w+/(openai-go|anthropic-sdk-go)(?:/v\d+)? v(\S+)`).FindAllStringSubmatch(string(mod), -1) {
		versions[m[1]] = m[2]
	}
	require.Len(t, versions, 2)
	mention := regexp.MustCompile(`(openai-go|anthropic-sdk-go)(?:/v\d+)?\s+(?://\s+)?v(\d+\.\d+(?:\.\d+)?)`)
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md") || d.Name() == "CHANGELOG.md" {
			return err
		}
		data, err := os.ReadFile(name)
		if !bytes.Contains(data, []byte("openai-go")) && !bytes.Contains(data, []byte("anthropic-sdk-go")) {
			return err
		}
		for _, m := range mention.FindAllStringSubmatch(string(data), -1) {
			found++
			if !strings.HasPrefix(versions[m[1]]+".", m[2]+".") {
				t.Errorf("%s: %s v%s, but internal/sdk tests v%s", name, m[1], m[2], versions[m[1]])
			}
		}
		return err
	}))
	require.Greater(t, found, 5)
}

// TestImportsTable compares the table of imports in CONTRIBUTING.md with what the modules require.
func TestImportsTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| (.*) \\|$")
	const base = "github.com/weft-go/weft/"
	cmd := exec.Command("go", "list", "-f", `{{if ne .Name "main"}}{{.Module.Path}} {{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}`, "work")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "GOWORK=")
	out, err := cmd.Output()
	require.NoError(t, err)
	imports := map[string][]string{} // by module
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.Contains(fields[1]+"/", "/internal/") { // helpers of tests
			imports[fields[0]] = append(imports[fields[0]], fields[2:]...)
		}
	}
	seen := 0
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		dir := filepath.Join("..", "..", filepath.FromSlash(m[1]))
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil || strings.Contains(m[2], "everything") {
			continue
		}
		seen++
		got := map[string]bool{}
		for _, path := range imports[base+m[1]] {
			first, _, _ := strings.Cut(path, "/")
			switch own := base + m[1]; {
			case !strings.Contains(first, "."), path == own, strings.HasPrefix(path, own+"/"): // the standard library, itself
			case strings.HasPrefix(path, base):
				mod, _, _ := strings.Cut(strings.TrimPrefix(path, base), "/")
				got[mod] = true
			default:
				parts := strings.SplitN(path, "/", 4)
				got[strings.Join(parts[1:min(3, len(parts))], "/")] = true
			}
		}
		for name := range got {
			if !strings.Contains(m[2], "`"+name) {
				t.Errorf("%s imports %s, which its row does not name: %s", m[1], name, m[2])
			}
		}
		for _, q := range regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9]+)?)`").FindAllStringSubmatch(m[2], -1) {
			mod, _, _ := strings.Cut(q[1], "/")
			if !got[q[1]] && !got[mod] {
				t.Errorf("%s does not import %s, which its row names", m[1], q[1])
			}
		}
	}
	require.GreaterOrEqual(t, seen, 6)
}
