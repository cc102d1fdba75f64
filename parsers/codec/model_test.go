// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
)

// The tests here write random values in a syntax, decode them, and expect the values.

var modelText = []string{
	"a", "xyz", " ", "\n", "\t", `"`, "'", `\`, `\n`, "}", "]", ")", ",", ":", "é", "東京", "🗼", "\x00", "<", `<|"|`, `"""`,
	"'''", "call:x{",
}

func modelString(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(8) {
		b.WriteString(modelText[r.IntN(len(modelText))])
	}
	return strings.ReplaceAll(b.String(), `<|"|>`, "")
}

// modelValue returns a random value in the types of encoding/json.
func modelValue(r *rand.Rand, depth int) any {
	n := 8
	if depth > 4 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return json.Number(strconv.Itoa(r.IntN(2000) - 1000))
	case 3:
		return json.Number(strconv.FormatFloat(r.NormFloat64(), 'f', -1, 64))
	case 4, 5:
		return modelString(r)
	case 6:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, modelValue(r, depth+1))
		}
		return list
	}
	object := map[string]any{}
	for i := range r.IntN(4) {
		object[fmt.Sprintf("k%d%s", i, modelString(r))] = modelValue(r, depth+1)
	}
	return object
}

// modelArgs returns a random arguments object, with keys that any syntax can write.
func modelArgs(r *rand.Rand) map[string]any {
	object := map[string]any{}
	for i := range r.IntN(4) {
		object[fmt.Sprintf("k%d", i)] = modelValue(r, 1)
	}
	return object
}

func requireModel(t *testing.T, d grammar.Decoder, text string, want map[string]any, r *rand.Rand) {
	got := same(t, d, nil, text, r)
	require.Equal(t, grammar.Done, got.Status, text)
	require.Equal(t, len(text), got.Taken, text)
	dec := json.NewDecoder(strings.NewReader(got.JSON))
	dec.UseNumber()
	var back map[string]any
	require.NoError(t, dec.Decode(&back))
	if diff := cmp.Diff(want, back); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", text, diff)
	}
}

// pick returns one of the alternatives.
func pick(r *rand.Rand, alternatives ...string) string {
	return alternatives[r.IntN(len(alternatives))]
}

// list joins what each of n elements is, with separators as models write them.
func list(r *rand.Rand, n int, element func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(pick(r, ",", ", ", ",\n  "))
		}
		b.WriteString(element(i))
	}
	return b.String()
}

func keysOf(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func gemmaText(r *rand.Rand, v any) string {
	switch v := v.(type) {
	case nil:
		return pick(r, "null", "None", "nil", "NULL")
	case bool:
		return pick(r, strconv.FormatBool(v), strings.ToUpper(strconv.FormatBool(v)))
	case json.Number:
		return v.String()
	case string:
		if r.IntN(4) == 0 {
			b, _ := json.Marshal(v)
			return string(b)
		}
		return q("~") + v + q("~") + pick(r, "", "", " ", "\n")
	case []any:
		return "[" + list(r, len(v), func(i int) string { return gemmaText(r, v[i]) }) + "]"
	case map[string]any:
		keys := keysOf(v)
		return "{" + list(r, len(v), func(i int) string {
			key := keys[i]
			switch {
			case r.IntN(2) == 0:
				key = q("~") + key + q("~")
			case r.IntN(2) == 0 || strings.ContainsAny(key, "{}[]:, \n\t"):
				b, _ := json.Marshal(key)
				key = string(b)
			}
			return key + pick(r, ":", ": ") + gemmaText(r, v[keys[i]])
		}) + "}"
	}
	panic("no such value")
}

func pythonText(r *rand.Rand, v any) string {
	switch v := v.(type) {
	case nil:
		return pick(r, "None", "null", "(None)")
	case bool:
		if v {
			return pick(r, "True", "true")
		}
		return pick(r, "False", "false")
	case json.Number:
		return v.String()
	case string:
		return pythonQuoted(r, v)
	case []any:
		in := list(r, len(v), func(i int) string { return pythonText(r, v[i]) })
		if len(v) == 0 {
			return pick(r, "[]", "()", "[ ]")
		}
		return pick(r, "["+in+"]", "["+in+",]", "("+in+",)", "{"+in+"}")
	case map[string]any:
		keys := keysOf(v)
		return "{" + list(r, len(v), func(i int) string {
			return pythonQuoted(r, keys[i]) + pick(r, ":", " : ") + pythonText(r, v[keys[i]])
		}) + "}"
	}
	panic("no such value")
}

func pythonQuoted(r *rand.Rand, s string) string {
	quote := pick(r, `"`, "'", `"""`, "'''")
	var b strings.Builder
	prefix := pick(r, "", "", "u", "f")
	b.WriteString(prefix + quote)
	for _, c := range s {
		switch {
		case r.IntN(20) == 0:
			b.WriteString(quote + pick(r, " ", "\n") + quote) // another literal
			prefix = ""
		case r.IntN(20) == 0:
			b.WriteString("\\\n")
		}
		switch {
		case c == '\n' && r.IntN(2) == 0:
			b.WriteString(`\n`)
		case c == '\\' || strings.ContainsRune(quote, c):
			b.WriteString(`\` + string(c))
		case prefix == "f" && (c == '{' || c == '}'):
			b.WriteString(string(c) + string(c))
		case c < 0x100 && r.IntN(8) == 0:
			b.WriteString(pick(r, fmt.Sprintf(`\x%02x`, c), fmt.Sprintf(`\%03o`, c), fmt.Sprintf(`\u%04X`, c)))
		case c > 0x7f && r.IntN(3) == 0:
			b.WriteString(fmt.Sprintf(`\U%08x`, c))
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + quote
}

func TestGemmaModel(t *testing.T) {
	d := codec.Gemma{}.NewDecoder()
	for seed := range rounds(1500) {
		r := newRand(seed)
		want := modelArgs(r)
		requireModel(t, d, gemmaText(r, want), want, r)
	}
}

func TestPythonModel(t *testing.T) {
	d := codec.Python{}.NewDecoder()
	for seed := range rounds(1500) {
		r := newRand(seed)
		want := modelArgs(r)
		keys := keysOf(want)
		text := list(r, len(want), func(i int) string { return keys[i] + pick(r, "=", " = ") + pythonText(r, want[keys[i]]) })
		requireModel(t, d, text+pick(r, ")", " )"), want, r)
	}
}
