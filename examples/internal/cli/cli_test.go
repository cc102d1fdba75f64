// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		stderr string
	}{
		{nil, 0, ""},
		{ErrDone, 0, ""},
		{errors.New("no file"), 1, "prog: no file\n"},
		{Usagef("unknown flag -%s", "x"), 2, "prog: unknown flag -x (prog -h prints the usage)\n"},
	} {
		var stderr bytes.Buffer
		if got := Status(&stderr, "prog", tt.err); got != tt.status || stderr.String() != tt.stderr {
			t.Errorf("%v: status %d, stderr %q, want %d, %q", tt.err, got, &stderr, tt.status, tt.stderr)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		err  string
	}{
		{[]string{"-moddel", "x"}, "unknown flag -moddel; did you mean -model?"},
		{[]string{"--mod"}, "unknown flag -mod; did you mean -model or -model-dir?"},
		{[]string{"-zebra"}, "unknown flag -zebra"},
		{[]string{"-n", "many"}, `invalid value "many" for flag -n: parse error`},
		{[]string{"-model"}, "flag needs an argument: -model"},
	} {
		f := NewFlags("prog", "usage: prog", io.Discard)
		f.String("model", "", "")
		f.String("model-dir", "", "")
		f.Int("n", 0, "")
		err := f.Parse(tt.args)
		if _, ok := errors.AsType[*UsageError](err); !ok || err.Error() != tt.err {
			t.Errorf("%q: error %v, want %s", tt.args, err, tt.err)
		}
	}
	var out bytes.Buffer
	f := NewFlags("prog", "\nusage: prog [-n N]\n", &out)
	f.Int("n", 0, "`number` of rounds")
	if err := f.Parse([]string{"-h"}); !errors.Is(err, ErrDone) {
		t.Error(err)
	}
	if want := "usage: prog [-n N]\n\nFlags:\n  -n number\n    \tnumber of rounds\n  -version\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("help is %q", &out)
	}
}

func TestNear(t *testing.T) {
	schemes := []string{"dynamo", "vllm_sha256_cbor", "vllm_xxhash_cbor", "sglang", "llmd"}
	for name, want := range map[string][]string{
		"dinamo": {"dynamo"}, "vllm": {"vllm_sha256_cbor", "vllm_xxhash_cbor"}, "vllm-xxhash-cbor": {"vllm_xxhash_cbor"}, "dyanmo": {"dynamo"}, "vllm_sha25_cbor": {"vllm_sha256_cbor"},
		"nope": nil, "md5": nil, "": nil, "sglan": {"sglang"}, "SGLang": {"sglang"},
	} {
		if got := Near(name, schemes); !slices.Equal(got, want) {
			t.Errorf("Near(%q) = %q, want %q", name, got, want)
		}
	}
	if err := OneOf("scheme", "llmd", schemes...); err != nil {
		t.Error(err)
	}
	if err := OneOf("scheme", "md5", schemes...); err == nil || err.Error() != `unknown scheme "md5": want `+strings.Join(schemes, ", ") {
		t.Error(err)
	}
}

func TestModel(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mini", dir} {
		if files, err := Model("model", name); err != nil || files == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := filepath.Join(dir, "gone")
	for name, want := range map[string]string{
		"":              "no model: set -model DIR, or -model mini for the small tokenizer of this repository",
		"Qwen/Qwen3-8B": "no directory Qwen/Qwen3-8B; if it is a model on Hugging Face, download its files (hf download Qwen/Qwen3-8B --local-dir Qwen3-8B) and set -model Qwen3-8B",
		gone:            "no directory " + gone,
		file:            file + " is a file; use its directory",
	} {
		if _, err := Model("model", name); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
	if err := InModel("m", errors.New("bad json")); err.Error() != "m: bad json" {
		t.Error(err)
	}
	if err := InModel("m", errors.New("m: bad json")); err.Error() != "m: bad json" {
		t.Error(err)
	}
}

func TestRecords(t *testing.T) {
	name := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(name, []byte("\nbad\r\ngood"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(rec *Record) (any, bool, error) {
		word := strings.TrimSpace(string(rec.JSON))
		if word == "stop" {
			return nil, false, errors.New("stopped")
		}
		return word, word != "bad", nil
	}
	for _, tt := range []struct {
		stdin string
		files []string
		out   string
		err   string
	}{
		{"good\n \n<good>", nil, "\"good\"\n\"<good>\"\n", ""},
		{"good\nbad\nbad\n", nil, "\"good\"\n\"bad\"\n\"bad\"\n", "2 of 3 records have errors, the first is line 2"},
		{"", []string{name, name}, "\"bad\"\n\"good\"\n\"bad\"\n\"good\"\n", "2 of 4 records have errors, the first is line 2 of " + name},
		{"good\nstop\ngood\n", nil, "\"good\"\n", "stopped"},
	} {
		var out bytes.Buffer
		r := NewRecords(strings.NewReader(tt.stdin), tt.files, &out)
		err := r.Each(read)
		if err == nil {
			err = r.Finish()
		}
		if got := out.String(); got != tt.out || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: output %q, error %v, want %q, %q", tt.stdin, got, err, tt.out, tt.err)
		}
	}
}
