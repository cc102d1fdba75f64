// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A tool is a function that the model may call. The tools of a turn run concurrently: run must be safe for concurrent
// use and return soon after ctx ends.
type tool struct {
	name, about, schema string // schema is the JSON Schema of the arguments
	run                 func(ctx context.Context, dir fs.FS, a arguments) (string, error)
}

// arguments holds the arguments of all tools; each tool uses some.
type arguments struct {
	Path    string // clean and relative to the directory
	From    int
	Pattern string
}

// A toolbox holds the tools of an agent. It is safe for concurrent use.
type toolbox struct {
	tools []tool
	dir   fs.FS         // the directory that they read
	slow  time.Duration // delay before each tool runs, to simulate slow tools
}

// call runs a tool. An error becomes the result, for the model to read.
func (t *toolbox) call(ctx context.Context, name, args string) (result string, failed bool) {
	result, err := t.try(ctx, name, args)
	if err != nil {
		return "error: " + err.Error(), true
	}
	if len(result) > maxResult {
		result = strings.ToValidUTF8(result[:maxResult], "") + "\n(truncated)"
	}
	return result, false
}

func (t *toolbox) try(ctx context.Context, name, args string) (string, error) {
	i := slices.IndexFunc(t.tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return "", fmt.Errorf("unknown tool %q", name)
	}
	var a arguments
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return "", err
	}
	if a.Path = path.Clean(a.Path); !fs.ValidPath(a.Path) {
		return "", fmt.Errorf("%s is outside the directory", a.Path)
	}
	select {
	case <-time.After(t.slow):
		return t.tools[i].run(ctx, t.dir, a)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

const (
	maxFile   = 1 << 20  // size limit of files that are read, in bytes
	maxResult = 16 << 10 // size limit of results, in bytes (about 5,000 tokens); longer results are truncated
)

// fileTools returns tools that only read. On the file system of an os.Root they cannot leave its directory, not even
// through links.
func fileTools() []tool {
	return []tool{
		{"list_files", "List a directory: files with their size, directories with a slash.",
			`{"type":"object","properties":{"path":{"type":"string","description":"directory, . by default"}}}`, listFiles},
		{"read_file", "Read a text file. Lines come back numbered.",
			`{"type":"object","properties":{"path":{"type":"string"},"from":{"type":"integer",` +
				`"description":"first line, 1 by default"}},"required":["path"]}`, readFile},
		{"search", "Search the text files of a directory and its subdirectories for a regular expression (RE2).",
			`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string",` +
				`"description":"directory, . by default"}},"required":["pattern"]}`, search},
	}
}

func listFiles(_ context.Context, dir fs.FS, a arguments) (string, error) {
	entries, err := fs.ReadDir(dir, a.Path)
	var b strings.Builder
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			fmt.Fprintf(&b, "%s %d bytes\n", e.Name(), info.Size())
		} else if e.IsDir() {
			fmt.Fprintf(&b, "%s/\n", e.Name())
		}
	}
	return b.String(), err
}

func readFile(_ context.Context, dir fs.FS, a arguments) (string, error) {
	data, err := readText(dir, a.Path)
	var b strings.Builder
	n := 0
	for line := range bytes.Lines(data) {
		if n++; n >= a.From && b.Len() <= maxResult {
			fmt.Fprintf(&b, "%d  %s", n, line)
		}
	}
	return b.String(), err
}

func search(ctx context.Context, dir fs.FS, a arguments) (string, error) {
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		re = regexp.MustCompile(regexp.QuoteMeta(a.Pattern)) // not an RE2 expression: search for the literal text
	}
	var b strings.Builder
	err = fs.WalkDir(dir, a.Path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == a.Path:
			return err
		case err != nil || d.IsDir() && name != a.Path && d.Name()[0] == '.': // unreadable or hidden
			return fs.SkipDir
		}
		data, err := readText(dir, name)
		if err != nil {
			return nil // not a text file
		}
		n := 0
		for line := range bytes.Lines(data) {
			if n++; re.Match(line) && b.Len() <= maxResult {
				fmt.Fprintf(&b, "%s:%d: %s\n", name, n, bytes.TrimSpace(line))
			}
		}
		return nil
	})
	if err == nil && b.Len() == 0 {
		return "no match", nil
	}
	return b.String(), err
}

// readText reads a regular text file. Opening other files, such as a named pipe, could block.
func readText(dir fs.FS, name string) ([]byte, error) {
	switch st, err := fs.Stat(dir, name); {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular() || st.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxFile)
	}
	data, err := fs.ReadFile(dir, name)
	if err == nil && (!utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0) {
		return nil, fmt.Errorf("%s is not a text file", name)
	}
	return data, err
}
