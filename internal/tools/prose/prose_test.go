// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// names returns the groups of the phrases in a paragraph.
func names(s string) (list []string) {
	t := text{parts: []part{{lines: strings.Split(s, "\n"), first: 1}}}
	for _, h := range t.hits() {
		list = append(list, groups[h.group].name)
	}
	return list
}

func TestPhrases(t *testing.T) {
	for s, want := range map[string]string{
		"A header says which one counts.":                    "says",
		"Where a block stands in the body.":                  "stands",
		"The text behind the call.":                          "behind",
		"Stats is how large an index is.":                    "is how",
		"The memory is that of the copies.":                  "that of",
		"A hint of the wrong type is none.":                  "is none",
		"It is no proof.":                                    "is none",
		"Whoever reads it.":                                  "who",
		"An engine that answers late.":                       "answer",
		"The stream goes on.":                                "goes on",
		"What becomes of it.":                                "becomes of",
		"The decoder takes it for zero.":                     "taken for",
		"A place in the body.":                               "place",
		"The token beside the text.":                         "beside",
		"A member of the object.":                            "folder",
		"It is to be closed.":                                "shall",
		"Split over two lines it says\nthe same behind\nit.": "says behind",

		"An engine behind a proxy, and engines behind the gateway.": "",
		"The output is held back; a stream begins.":                 "",
		"It serves in front of two engines.":                        "",
		"RFC 9110 says so. As the specification says.":              "",
		"It holds the lock, and takes a long time for each.":        "",
		"Router places a request in place.":                         "",
		"There is no limit; it is no longer there.":                 "",
		"The fields `says` and \"place\", see [Answer].":            "",
		"A standard answerable placement.":                          "",
	} {
		if got := strings.Join(names(s), " "); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestReadGo(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a_test.go")
	src := "// SPDX-License-Identifier: Apache-2.0\n\n//go:build linux\n\n// Package a says\n// nothing:\n//\n//\tit says(code)\n//\n// Two words.\npackage a\n\nvar x = 1 // it lies here\n\n// Output:\n// says\n"
	if err := os.WriteFile(name, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	texts, err := collect(dir)
	if err != nil || len(texts) != 1 || texts[0].kind != test || texts[0].pkg != "." {
		t.Fatal(texts, err)
	}
	if n := texts[0].words(); n != 9 {
		t.Errorf("%d words", n)
	}
	var lines []int
	for _, h := range texts[0].hits() {
		lines = append(lines, h.line)
	}
	if !slices.Equal(lines, []int{5, 13}) {
		t.Errorf("hits in lines %d", lines)
	}
	if got := texts[0].hits()[0].sentence; got != "Package a says nothing:" {
		t.Errorf("sentence %q", got)
	}
}

func TestMarkdown(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(name, []byte("# Title\n\n```\nsays\n```\nIt says so.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readMarkdown(name, "README.md", ".")
	if err != nil || got.words() != 4 || len(got.hits()) != 1 || got.hits()[0].line != 6 {
		t.Error(got, err)
	}
}

func TestGoals(t *testing.T) {
	goals, err := readGoals(std)
	if err != nil || len(goals) != len(groups) {
		t.Fatal(goals, err)
	}
	for g, goal := range goals {
		if goal < floor {
			t.Errorf("%s: goal %v", groups[g].name, goal)
		}
	}
	texts := []text{{kind: code, parts: []part{{lines: []string{strings.Repeat("plain ", 1000)}}}}}
	if err := printTotals(&strings.Builder{}, texts, goals, true); err != nil {
		t.Error(err)
	}
	texts[0].parts[0].lines[0] += " it says that it says"
	if err := printTotals(&strings.Builder{}, texts, goals, true); err == nil {
		t.Error("a rate above its goal passes the check")
	}
	if err := printTotals(&strings.Builder{}, texts, goals, false); err != nil {
		t.Error(err)
	}
}
