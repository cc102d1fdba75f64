// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Result is the output of a parser for one sample.
type Result struct {
	Reasoning string
	Content   string
	Calls     []Call
	Aborted   int   // calls that were begun and not completed
	Err       error // of the parser
}

// Check compares got with the expected result as the workloads define it: reasoning and content after trimming white
// space, arguments as JSON values with numbers by value. It returns nil when got is right.
func (s *Sample) Check(got Result) error {
	if got.Err != nil {
		return fmt.Errorf("the parser failed: %w", got.Err)
	}
	if err := sameText("reasoning", s.Expect.Reasoning, got.Reasoning); err != nil {
		return err
	}
	if err := sameText("content", s.Expect.Content, got.Content); err != nil {
		return err
	}
	if got.Aborted > 0 {
		return fmt.Errorf("%d calls aborted", got.Aborted)
	}
	if len(got.Calls) != len(s.Expect.Calls) {
		return fmt.Errorf("%d calls, want %d", len(got.Calls), len(s.Expect.Calls))
	}
	for i, w := range s.Expect.Calls {
		g := got.Calls[i]
		if g.Name != w.Name {
			return fmt.Errorf("call %d is to %q, want %q", i, g.Name, w.Name)
		}
		want, err := decode(w.Arguments)
		if err != nil {
			return fmt.Errorf("call %d: expected arguments: %w", i, err)
		}
		args, err := decode(g.Arguments)
		if err != nil {
			return fmt.Errorf("call %d: arguments are no JSON: %w", i, err)
		}
		if err := s.sameValue("arguments", want, args); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

func sameText(what, want, got string) error {
	return same(what, strings.TrimSpace(want), strings.TrimSpace(got))
}

func same(what, want, got string) error {
	if want == got {
		return nil
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	return fmt.Errorf("%s has %d bytes, want %d; it differs at byte %d: %q, want %q",
		what, len(got), len(want), i, around(got, i), around(want, i))
}

// around returns a few bytes of s at i.
func around(s string, i int) string { return s[i:min(len(s), i+24)] }

// decode reads exactly one JSON value and keeps the spelling of numbers.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the value")
	}
	return v, nil
}

// elided replaces a long string in the expected arguments; the string in the sample's text is then expected.
const elided = "(elided: see text)"

// sameValue compares two JSON values; at is where they are.
func (s *Sample) sameValue(at string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is a %T, want an object", at, got)
		}
		for k, v := range w {
			x, ok := g[k]
			if !ok {
				return fmt.Errorf("%s has no %q", at, k)
			}
			if err := s.sameValue(at+"."+k, v, x); err != nil {
				return err
			}
		}
		if len(g) != len(w) {
			return fmt.Errorf("%s has %d members, want %d", at, len(g), len(w))
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s is %T of other length, want %d elements", at, got, len(w))
		}
		for i := range w {
			if err := s.sameValue(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		if g, ok := got.(json.Number); !ok || !sameNumber(w, g) {
			return fmt.Errorf("%s is %T %v, want number %v", at, got, got, w)
		}
		return nil
	case string:
		g, ok := got.(string)
		if !ok {
			return fmt.Errorf("%s is %T, want a string", at, got)
		}
		if w == elided {
			return s.inText(at, g)
		}
		return same(at, w, g)
	}
	if want != got {
		return fmt.Errorf("%s is %v, want %v", at, got, want)
	}
	return nil
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	return errX == nil && errY == nil && x == y
}

// closers are the texts that end a raw string value in families that do not quote strings.
var closers = []string{
	"\n</parameter>", "</parameter>", "</arg_value>", "</｜DSML｜parameter>", `<|"|>`, "<|close|>argument",
}

// inText checks a string whose expected value was left out: it must occur in the text as a whole value, quoted or up to
// the markup that ends it, and has to be most of the text.
func (s *Sample) inText(at, got string) error {
	if len(got) < len(s.Text)*3/4 {
		return fmt.Errorf("%s has %d bytes, want most of the %d in the text", at, len(got), len(s.Text))
	}
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(got); err != nil {
		return err
	}
	python := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(got) + `"`
	if strings.Contains(s.Text, strings.TrimSpace(quoted.String())) || strings.Contains(s.Text, python) {
		return nil
	}
	for _, c := range closers {
		if strings.Contains(s.Text, got+c) {
			return nil
		}
	}
	return fmt.Errorf("%s has %d bytes that are no whole value of the text", at, len(got))
}
