// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The kinds of text.
const (
	code = iota
	test
	readme
)

var kinds = []string{"code", "tests", "READMEs"}

// A text is the prose of a file: its comments, or a Markdown file without code.
type text struct {
	pkg, file string // below the root
	kind      int
	parts     []part // paragraphs
}

// A part is a paragraph of prose.
type part struct {
	lines []string
	first int // number of the first line
}

// collect returns the texts of the Go and Markdown files below root, except generated files and test data.
func collect(root string) ([]text, error) {
	var texts []text
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if base == "testdata" || base == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		pkg := "."
		if i := strings.LastIndexByte(rel, '/'); i >= 0 {
			pkg = rel[:i]
		}
		var t text
		ok := false
		switch {
		case strings.HasSuffix(base, ".go"):
			t, ok, err = readGo(name, rel, pkg)
		case strings.HasSuffix(base, ".md") && base != "CHANGELOG.md": // its migration table quotes old names
			t, err = readMarkdown(name, rel, pkg)
			ok = true
		}
		if err == nil && ok {
			texts = append(texts, t)
		}
		return err
	})
	return texts, err
}

// readGo returns the comments of a Go file. It reports false for generated files.
func readGo(name, rel, pkg string) (text, bool, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return text{}, false, err
	}
	t := text{pkg: pkg, file: rel}
	if strings.HasSuffix(name, "_test.go") {
		t.kind = test
	}
	for _, group := range file.Comments {
		output := false
		var p part
		end := func() {
			if len(p.lines) > 0 {
				t.parts = append(t.parts, p)
			}
			p = part{}
		}
		for _, c := range group.List {
			at := fset.Position(c.Pos()).Line
			body, line := strings.CutPrefix(c.Text, "//")
			if !line {
				body = strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
			}
			for i, l := range strings.Split(body, "\n") {
				switch {
				case line && directive.MatchString(l) || strings.Contains(l, "SPDX-License-Identifier") || strings.Contains(l, "Copyright "):
					end()
					continue
				case line && (strings.HasPrefix(l, " Output:") || strings.HasPrefix(l, " Unordered output:")):
					output = true
				}
				if output || strings.TrimSpace(l) == "" || strings.HasPrefix(strings.TrimPrefix(l, " "), "\t") || strings.HasPrefix(l, "    ") {
					end() // blank, or code
					continue
				}
				if len(p.lines) == 0 {
					p.first = at + i
				}
				p.lines = append(p.lines, l)
			}
		}
		end()
	}
	return t, true, nil
}

// directive matches the text after // of comments for tools.
var directive = regexp.MustCompile(`^(?:[a-z]+:\S|go:|export |extern |line )`)

// readMarkdown returns the text of a Markdown file without code blocks.
func readMarkdown(name, rel, pkg string) (text, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return text{}, err
	}
	t := text{pkg: pkg, file: rel, kind: readme}
	fence := false
	var p part
	for i, l := range strings.Split(string(data), "\n") {
		trimmed := strings.TrimSpace(l)
		mark := strings.HasPrefix(trimmed, "```")
		if mark {
			fence = !fence
		}
		if mark || fence || trimmed == "" {
			if len(p.lines) > 0 {
				t.parts = append(t.parts, p)
			}
			p = part{}
			continue
		}
		if len(p.lines) == 0 {
			p.first = i + 1
		}
		p.lines = append(p.lines, l)
	}
	if len(p.lines) > 0 {
		t.parts = append(t.parts, p)
	}
	return t, nil
}

// words returns the number of words in t.
func (t *text) words() (n int) {
	for _, p := range t.parts {
		for _, l := range p.lines {
			for _, f := range strings.Fields(l) {
				if strings.ContainsFunc(f, isLetter) {
					n++
				}
			}
		}
	}
	return n
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// A hit is a phrase in a text.
type hit struct {
	group    int
	line     int
	sentence string
}

// hits returns the phrases in t, in the order of the groups within each paragraph.
func (t *text) hits() []hit {
	var all []hit
	for _, p := range t.parts {
		joined := strings.Join(p.lines, "\n")
		plain := quoted.ReplaceAllStringFunc(joined, blank)
		plain = strings.ReplaceAll(plain, "\n", " ") // a phrase may continue on the next line
		for g, group := range groups {
			var except [][]int
			if group.except != nil {
				except = group.except.FindAllStringIndex(plain, -1)
			}
			for _, m := range group.match.FindAllStringIndex(plain, -1) {
				if !inside(m, except) {
					all = append(all, hit{g, p.first + strings.Count(joined[:m[0]], "\n"), sentence(joined, m[0])})
				}
			}
		}
	}
	return all
}

// inside reports whether one of the ranges contains m.
func inside(m []int, ranges [][]int) bool {
	for _, r := range ranges {
		if r[0] <= m[0] && m[1] <= r[1] {
			return true
		}
	}
	return false
}

// quoted matches quoted text within a paragraph, which does not count: names of fields, flags and samples.
var quoted = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|\\[[^]\\s]*\\]|https?://\\S+")

// blank returns as many bytes as s has, without words.
func blank(s string) string { return strings.Repeat("_", len(s)) }

// sentence returns the sentence around byte i of s, on one line.
func sentence(s string, i int) string {
	start, end := 0, len(s)
	for _, m := range stop.FindAllStringIndex(s, -1) {
		if m[1] <= i {
			start = m[1]
		} else if m[0] >= i {
			end = m[1]
			break
		}
	}
	return strings.Join(strings.Fields(s[start:end]), " ")
}

// stop matches the end of a sentence.
var stop = regexp.MustCompile(`[.!?](?:\s+|$)|\s\|\s`)
