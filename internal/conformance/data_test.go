// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
)

// shared returns a file of the test data, or skips.
func shared(t testing.TB, path ...string) string {
	t.Helper()
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f := filepath.Join(append([]string{root}, path...)...)
	if _, err := os.Stat(f); err != nil {
		t.Skipf("test data not there: %v (set WEFT_SHARED)", err)
	}
	return f
}

// long reports whether to run what takes long: WEFT_TEST=long is set, as .ci/run does in one of its passes.
func long() bool { return os.Getenv("WEFT_TEST") == "long" }

// only returns the family that WEFT_FAMILY names, or "" for all.
func only() string { return os.Getenv("WEFT_FAMILY") }

// load returns the records of a file of JSON lines, one slice per family, in order. WEFT_FAMILY names the only family to
// load.
func load[T any](t testing.TB, file string, family func(*T) string) map[string][]*T {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	only := only()
	s := bufio.NewScanner(in)
	s.Buffer(nil, 64<<20)
	out := map[string][]*T{}
	for s.Scan() {
		v := new(T)
		require.NoError(t, json.Unmarshal(s.Bytes(), v))
		if f := family(v); only == "" || f == only {
			out[f] = append(out[f], v)
		}
	}
	require.NoError(t, s.Err())
	if len(out) == 0 {
		t.Skipf("no records of family %q", only)
	}
	return out
}

// built reports whether there is a parser of the family.
func built(family string) bool {
	_, err := parsers.Default().Lookup(family)
	return err == nil
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func toolsOf(in []tool) (out []parsers.Tool) {
	for _, t := range in {
		out = append(out, parsers.Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	return out
}

// startOf returns where generation begins, as the corpora spell it. If a corpus does not specify it, the family
// decides.
func startOf(s string) parsers.Start {
	switch s {
	case "none":
		return parsers.StartTurn
	case "reasoning":
		return parsers.StartReasoning
	case "response":
		return parsers.StartResponse
	}
	return 0
}
