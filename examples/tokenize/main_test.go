// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

func runLines(t *testing.T, in string, args ...string) []string {
	t.Helper()
	return runBad(t, "", in, args...)
}

// runBad is like runLines for a run that fails after its last record; why is "" if it does not fail.
func runBad(t *testing.T, why, in string, args ...string) []string {
	t.Helper()
	var out, msg bytes.Buffer
	is := ""
	if err := run(args, strings.NewReader(in), &out, &msg); err != nil {
		is = err.Error()
	}
	if is != why {
		t.Fatalf("error %q, want %q; %s", is, why, msg.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestRoundTrip(t *testing.T) {
	in := `{"id":1,"text":"Hello, 世界 🚀<|im_end|>"}
{"id":"two","text":""}
{"id":3}
{"id":4,"text":7}
nonsense` + "\r\n\r\n"
	enc := runBad(t, "3 of 5 records have errors, the first is line 3", in, "-model", "mini")
	if len(enc) != 5 || enc[1] != `{"id":"two","ids":[]}` || enc[2] != `{"id":3,"error":"no text"}` ||
		!strings.HasPrefix(enc[3], `{"id":4,"error":`) || !strings.HasPrefix(enc[4], `{"id":null,"error":`) {
		t.Fatalf("got %q", enc)
	}
	dec := runBad(t, "1 of 2 records have errors, the first is line 2", enc[0]+"\n"+`{"id":9,"ids":[99999999]}`, "-model", "mini", "-decode")
	var a struct {
		Text   string
		Deltas []string
	}
	if err := json.Unmarshal([]byte(dec[0]), &a); err != nil {
		t.Fatal(err)
	}
	if a.Text != "Hello, 世界 🚀<|im_end|>" || strings.Join(a.Deltas, "") != a.Text {
		t.Errorf("got %+v", a)
	}
	if dec[1] != `{"id":9,"error":"no token has the id 99999999"}` {
		t.Errorf("got %s", dec[1])
	}
	dec = runLines(t, enc[0], "-model", "mini", "-decode", "-skip-special")
	if strings.Contains(dec[0], "im_end") {
		t.Errorf("special token in %s", dec[0])
	}
}

func TestStats(t *testing.T) {
	out := runLines(t, `{"id":1,"text":"for i := range n {"}`, "-model", "mini", "-stats")
	var last struct{ Stats map[string]float64 }
	if err := json.Unmarshal([]byte(out[len(out)-1]), &last); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"bytes", "tokens", "mb_per_s_cold", "mb_per_s_warm", "load_ms"} {
		if last.Stats[k] <= 0 {
			t.Errorf("%s is %v", k, last.Stats[k])
		}
	}
	if _, ok := last.Stats["allocs_per_encode"]; !ok {
		t.Error("no allocs_per_encode")
	}
}

func TestFatal(t *testing.T) {
	for _, args := range [][]string{{}, {"-model", t.TempDir()}, {"-model", "mini", "no-such-file"}} {
		var out, msg bytes.Buffer
		if err := run(args, strings.NewReader(""), &out, &msg); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// The cache does not change ids, and offsets locate the text of each id.
func TestCacheAndOffsets(t *testing.T) {
	in := strings.Repeat(`{"id":1,"text":"<|im_start|>user\nHello, 世界 🚀<|im_end|>\n<|im_start|>assistant\n"}`+"\n", 3)
	plain := runLines(t, in, "-model", "mini", "-special")
	if cached := runLines(t, in, "-model", "mini", "-special", "-cache"); strings.Join(cached, "\n") != strings.Join(plain, "\n") {
		t.Errorf("cached %q, want %q", cached, plain)
	}
	var a struct {
		IDs     []uint32
		Offsets [][2]int
	}
	out := runLines(t, `{"id":1,"text":"Hello<|im_end|>"}`, "-model", "mini", "-offsets")
	if err := json.Unmarshal([]byte(out[0]), &a); err != nil {
		t.Fatal(err)
	}
	if n := len(a.IDs); n < 2 || len(a.Offsets) != n || a.Offsets[n-1] != [2]int{5, 15} {
		t.Errorf("got %s", out[0])
	}
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "tokenize", func(args []string, stdout *bytes.Buffer) error {
		return run(args, strings.NewReader(""), stdout, &bytes.Buffer{})
	})
}
