// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Small files that would take much time or memory, in the load or with the first text.
func TestHostileStages(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	const model = `"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}}}`
	replace := func(old, to string) string {
		return fmt.Sprintf(`{"type":"Replace","pattern":{"String":%q},"content":%q}`, old, to)
	}
	regex := func(expr, to string) string {
		return fmt.Sprintf(`{"type":"Replace","pattern":{"Regex":%q},"content":%q}`, expr, to)
	}
	list := func(kind, name string, parts []string) string {
		return fmt.Sprintf(`{%q:{"type":"Sequence",%q:[%s]},`, kind, name, strings.Join(parts, ",")) + model
	}
	repeat := func(s string, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = s
		}
		return out
	}
	swaps := make([]string, 40) // each ideograph becomes two of the next
	for i := range swaps {
		swaps[i] = replace(string(rune(0x4e00+i)), strings.Repeat(string(rune(0x4e01+i)), 2))
	}
	nested := strings.Repeat(`{"type":"Sequence","normalizers":[`, 7600) + strings.Repeat(`]}`, 7600)
	for _, c := range []struct{ name, file, want string }{
		{"doubling normalizers", list("normalizer", "normalizers", repeat(replace("a", "aa"), 20)), "normalizer: limit exceeded: replacements lengthen a text up to 1.05e+06 times, the limit is 256"},
		{"chain of normalizers", list("normalizer", "normalizers", swaps), "normalizer: limit exceeded: replacements lengthen a text up to 1.1e+12 times, the limit is 256"},
		{"doubling expressions", list("normalizer", "normalizers", repeat(regex("[ab]", "ab"), 20)), "normalizer: limit exceeded: replacements lengthen a text up to 1.05e+06 times, the limit is 256"},
		{"insertions", list("normalizer", "normalizers", repeat(regex("(?=.)", "a"), 20)), "normalizer: limit exceeded: replacements lengthen a text up to 1.05e+06 times, the limit is 256"},
		{"doubling through Unicode", list("normalizer", "normalizers", append(repeat(replace("a", "\u00e4\u00e4"), 1), repeat(`{"type":"NFKD"}`, 6)...)), "normalizer: limit exceeded: lengthens a text up to 7.09e+06 times, the limit is 8192"},
		{"long replacement", `{"normalizer":` + replace("a", strings.Repeat("b", 300)) + "," + model, "normalizer: limit exceeded: replacements lengthen a text up to 300 times, the limit is 256"},
		{"long prefix", `{"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("b", 300) + `"},` + model, "normalizer: limit exceeded: 300 bytes to prepend, the limit is 256"},
		{"doubling decoders", list("decoder", "decoders", repeat(replace("a", "aa"), 30)), "decoder: limit exceeded: replacements lengthen a text up to 1.07e+09 times, the limit is 256"},
		{"doubling decoders of the whole text", list("decoder", "decoders", append([]string{`{"type":"Fuse"}`}, repeat(replace("a", "aa"), 30)...)), "decoder: limit exceeded: replacements lengthen a text up to 1.07e+09 times, the limit is 256"},
		{"nested normalizers", `{"normalizer":` + nested + "," + model, strings.TrimSuffix("normalizer"+strings.Repeat(".normalizers[0]", 16), "") + ": limit exceeded: nested in 16 other sequences"},
		{"many normalizers", list("normalizer", "normalizers", repeat(`{"type":"NFC"}`, 300)), "normalizer.normalizers[256]: limit exceeded: more than 256 normalizers"},
		{"many expressions", list("pre_tokenizer", "pretokenizers", repeat(`{"type":"Split","pattern":{"Regex":"x+y"},"behavior":"Isolated"}`, 100)), "pre_tokenizer.pretokenizers[64]: limit exceeded: more than 64 steps"},
		{"many decoders", list("decoder", "decoders", repeat(replace("a", "b"), 100)), "decoder.decoders[65]: limit exceeded: more than 64 decoders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := parse([]byte(c.file))
			runtime.ReadMemStats(&after)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, ErrLimit) {
				t.Fatalf("got %v", err)
			}
			got := strings.TrimPrefix(err.Error(), "tokenizers: tokenizer.json: ")
			if got = strings.TrimSuffix(got, fmt.Sprintf(" (offset %d)", e.Offset)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 48<<20 && !raceEnabled {
				t.Errorf("%d bytes allocated for a file of %d", n, len(c.file))
			}
		})
	}
}

// Replacements of different characters do not multiply, and neither do those that shorten.
func TestAmplification(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []growth
		want  float64
	}{
		{"none", nil, 1},
		{"different characters", []growth{{old: " ", to: "<space>", factor: 7}, {old: "\n", to: "<newline>", factor: 9}, {old: "\t", to: "<tab>", factor: 5}}, 9},
		{"shared characters", []growth{{old: " ", to: "ab", factor: 2}, {old: "b", to: "ccc", factor: 3}}, 6},
		{"shorter first", []growth{{old: "aaaa", to: "b", factor: .25}, {old: "b", to: "cccccccc", factor: 8}}, 8},
		{"expression", []growth{{any: true, factor: 3}, {old: "x", to: "yy", factor: 2}}, 6},
		{"shortening expression", []growth{{any: true, factor: 0}, {old: "x", to: "yy", factor: 2}}, 2},
	} {
		if got, _ := amplification(c.steps); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
