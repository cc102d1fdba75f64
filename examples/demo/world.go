// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A world is an in-memory repository and the tools that read and change it. It is safe for concurrent use by multiple
// goroutines.
type world struct {
	clock clock

	mu    sync.Mutex
	files map[string]string
}

// newWorld returns a fresh copy of a repository with one bug in it.
func newWorld(c clock) *world {
	return &world{clock: c, files: map[string]string{
		"go.mod":       "module example.com/courier\n\ngo 1.26.0\n",
		"CHANGELOG.md": "# Changelog\n\n## Unreleased\n- courier: deliver parcels over HTTP/2\n",
		"retry.go": "package courier\n\nimport \"time\"\n\n// MaxAttempts bounds how often a parcel is sent before it is returned.\n" +
			"const MaxAttempts = 3\n\n// Backoff returns how long to wait before attempt n, from 1.\nfunc Backoff(n int) time.Duration {\n" +
			"\treturn min(100*time.Millisecond<<(n-1), 5*time.Second)\n}\n",
		"retry_test.go": "package courier\n\nimport \"testing\"\n\nfunc TestRetry(t *testing.T) {\n\tc := flaky(4) // fails four times, then works\n" +
			"\tgot := c.Send(parcel)\n\tif want := 5; got.Attempts != want {\n\t\tt.Fatalf(\"attempts = %d, want %d\", got.Attempts, want)\n\t}\n}\n",
		"courier.go": "package courier\n\n// Send delivers p, trying up to MaxAttempts times.\nfunc (c *Client) Send(p Parcel) Result {\n" +
			"\tfor n := 1; ; n++ {\n\t\terr := c.try(p)\n\t\tif err == nil || n == MaxAttempts {\n\t\t\treturn Result{Attempts: n, Err: err}\n\t\t}\n" +
			"\t\tc.sleep(Backoff(n))\n\t}\n}\n",
	}}
}

// A tool is a function that the agent may call. Its run time is modeled, since work in memory takes no time.
type tool struct {
	name, description string
	params            []string // required string parameters, with descriptions
	takes             time.Duration
	run               func(w *world, args map[string]string) (string, error)
}

var tools = []tool{
	{"read_file", "Read a file of the repository. Lines come back numbered from 1.",
		[]string{"path", "Path of the file, relative to the root of the repository"}, 150 * time.Millisecond, (*world).read},
	{"grep", "Search all files for a regular expression (RE2). Matches come back as path:line: text.",
		[]string{"pattern", "The expression to search for"}, 900 * time.Millisecond, (*world).grep},
	{"edit_file", "Replace one piece of text in a file. The old text must occur exactly once.",
		[]string{"path", "Path of the file", "old", "Text to replace, exactly as it stands in the file", "new", "Text to put in its place"},
		200 * time.Millisecond, (*world).edit},
	{"run_tests", "Run the tests of the repository and report what failed.",
		[]string{"run", "Regular expression: which tests to run"}, 2500 * time.Millisecond, (*world).test},
}

// schema returns the tool's JSON schema.
func (t *tool) schema() json.RawMessage {
	type prop struct {
		Type        string `json:"type"`
		Description string `json:"description"`
	}
	props, required := map[string]prop{}, []string{}
	for i := 0; i < len(t.params); i += 2 {
		props[t.params[i]] = prop{"string", t.params[i+1]}
		required = append(required, t.params[i])
	}
	b, _ := json.Marshal(map[string]any{"type": "object", "properties": props, "required": required}) // always encodes
	return b
}

// call runs the tool called name. An error of the tool becomes the result, for the model to read.
func (w *world) call(ctx context.Context, name, arguments string) (result string, took time.Duration) {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return "error: no tool " + name, 0
	}
	t := &tools[i]
	var args map[string]string
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		return "error: " + err.Error(), 0
	}
	w.clock.sleep(ctx, t.takes)
	w.mu.Lock()
	defer w.mu.Unlock()
	out, err := t.run(w, args)
	if err != nil {
		out = "error: " + err.Error()
	}
	return out, t.takes
}

func (w *world) read(args map[string]string) (string, error) {
	text, ok := w.files[args["path"]]
	if !ok {
		return "", fmt.Errorf("no file %q", args["path"])
	}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		fmt.Fprintf(&b, "%3d  %s", n, line)
	}
	return b.String(), nil
}

func (w *world) grep(args map[string]string) (string, error) {
	re, err := regexp.Compile(args["pattern"])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(w.files)) {
		n := 0
		for line := range strings.Lines(w.files[path]) {
			if n++; re.MatchString(line) {
				fmt.Fprintf(&b, "%s:%d: %s", path, n, line)
			}
		}
	}
	if b.Len() == 0 {
		return "no match", nil
	}
	return b.String(), nil
}

func (w *world) edit(args map[string]string) (string, error) {
	text := w.files[args["path"]]
	if n := strings.Count(text, args["old"]); args["old"] == "" || n != 1 {
		return "", fmt.Errorf("the old text occurs %d times in %q", n, args["path"])
	}
	w.files[args["path"]] = strings.Replace(text, args["old"], args["new"], 1)
	return "edited " + args["path"], nil
}

var (
	limitRE = regexp.MustCompile(`MaxAttempts = (\d+)`)
	wantRE  = regexp.MustCompile(`want := (\d+)`)
)

// test is a minimal test runner: it knows one test and reads both numbers from the files.
func (w *world) test(map[string]string) (string, error) {
	limit, want := limitRE.FindStringSubmatch(w.files["retry.go"]), wantRE.FindStringSubmatch(w.files["retry_test.go"])
	if limit == nil || want == nil {
		return "", fmt.Errorf("the package does not build")
	}
	if limit[1] != want[1] {
		return fmt.Sprintf("--- FAIL: TestRetry\n    retry_test.go:9: attempts = %s, want %s\nFAIL\n", limit[1], want[1]), nil
	}
	return "ok  \texample.com/courier\t1 test passed\n", nil
}
