// SPDX-License-Identifier: Apache-2.0

package unidata

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

//go:generate go run ./gen/category -o category_tables.go

// This file has the lookups that expressions need besides [Class]: sets by the name of a property, and case folding.
// It is for compiling expressions, not for scanning text: results are lists of inclusive ranges, built
// by every call.

// Property returns the characters that \p{name} of Oniguruma (Unicode 16) matches in a character class, sorted
// by code point, as ranges that may touch: general categories (one and two letters, and their long names),
// scripts, and the properties listed in propertyOf. Case, spaces, hyphens and underscores in a name do not
// count. Surrogates are in no set but those that are complements.
func Property(name string) ([][2]rune, bool) {
	name = strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
	if long, ok := aliases[name]; ok {
		name = long
	}
	if f, ok := propertyOf[name]; ok {
		return f(), true
	}
	if r := category(name); r != nil {
		return r, true
	}
	for i, n := range strings.Fields(scriptNames) {
		if strings.ReplaceAll(strings.ToLower(n), "_", "") == name {
			return runsOf(scriptRuns[:], func(id uint8) bool { return int(id) == i+1 }), true
		}
	}
	return nil, false
}

// Posix returns the characters of [[:name:]]. It is [Property] for the fourteen POSIX names, in lower case;
// only punct differs, which holds the symbols too.
func Posix(name string) ([][2]rune, bool) {
	switch name {
	case "punct":
		return category("p", "s"), true
	case "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "space", "upper", "xdigit", "word":
		return Property(name)
	}
	return nil, false
}

var aliases = map[string]string{
	"letter": "l", "uppercaseletter": "lu", "lowercaseletter": "ll", "titlecaseletter": "lt", "modifierletter": "lm",
	"otherletter": "lo", "mark": "m", "nonspacingmark": "mn", "spacingmark": "mc", "enclosingmark": "me", "combiningmark": "m",
	"number": "n", "decimalnumber": "nd", "digit": "nd", "letternumber": "nl", "othernumber": "no", "punctuation": "p", "punct": "p",
	"connectorpunctuation": "pc", "dashpunctuation": "pd", "openpunctuation": "ps", "closepunctuation": "pe",
	"initialpunctuation": "pi", "finalpunctuation": "pf", "otherpunctuation": "po", "symbol": "s", "mathsymbol": "sm",
	"currencysymbol": "sc", "modifiersymbol": "sk", "othersymbol": "so", "separator": "z", "spaceseparator": "zs",
	"lineseparator": "zl", "paragraphseparator": "zp", "control": "cc", "cntrl": "cc", "format": "cf", "privateuse": "co",
	"alphabetic": "alpha", "lowercase": "lower", "uppercase": "upper", "whitespace": "space",
	"hani": "han", "hira": "hiragana", "kana": "katakana", "hang": "hangul", "latn": "latin", "cyrl": "cyrillic",
	"grek": "greek", "arab": "arabic", "hebr": "hebrew", "deva": "devanagari", "zyyy": "common", "zinh": "inherited",
}

var propertyOf = map[string]func() [][2]rune{
	"any":                  func() [][2]rune { return [][2]rune{{0, utf8.MaxRune}} },
	"ascii":                func() [][2]rune { return [][2]rune{{0, 0x7F}} },
	"assigned":             func() [][2]rune { return Complement(category("cn")) },
	"alpha":                func() [][2]rune { return join(category("l", "nl"), propAlphabetic[:]) },
	"alnum":                func() [][2]rune { return join(category("l", "nl", "nd"), propAlphabetic[:]) },
	"lower":                func() [][2]rune { return join(category("ll"), propLowercase[:]) },
	"upper":                func() [][2]rune { return join(category("lu"), propUppercase[:]) },
	"space":                func() [][2]rune { return join([][2]rune{{'\t', '\r'}, {0x85, 0x85}}, category("z")) },
	"blank":                func() [][2]rune { return join([][2]rune{{'\t', '\t'}}, category("zs")) },
	"graph":                func() [][2]rune { return graph() },
	"print":                func() [][2]rune { return join(graph(), category("zs")) },
	"xdigit":               func() [][2]rune { return [][2]rune{{'0', '9'}, {'A', 'F'}, {'a', 'f'}} },
	"word":                 func() [][2]rune { return join(category("l", "nl", "nd", "m", "pc"), propAlphabetic[:]) },
	"emoji":                func() [][2]rune { return slices.Clone(propEmoji[:]) },
	"extendedpictographic": func() [][2]rune { return slices.Clone(propExtendedPictographic[:]) },
	"ideographic":          func() [][2]rune { return slices.Clone(propIdeographic[:]) },
	"lc":                   func() [][2]rune { return category("lu", "ll", "lt") },
	"casedletter":          func() [][2]rune { return category("lu", "ll", "lt") },
}

// graph is everything assigned but white space and control characters. Surrogates are unassigned here.
func graph() [][2]rune {
	return Complement(join(category("cn", "z", "cc"), nil))
}

// category returns the union of general categories, or nil when none is known. cn includes surrogates.
func category(names ...string) [][2]rune {
	var in [32]bool
	found := false
	for _, name := range names {
		if name == "cn" || name == "c" {
			in[0], found = true, true
		}
		for i, n := range strings.Fields(categoryNames) {
			n = strings.ToLower(n)
			if n == name || n[:1] == name {
				in[i+1], found = true, true
			}
		}
	}
	if !found {
		return nil
	}
	return runsOf(categoryRuns[:], func(id uint8) bool { return in[id] })
}

func runsOf(runs []uint32, in func(uint8) bool) [][2]rune {
	var out [][2]rune
	for i, x := range runs {
		if !in(uint8(x)) {
			continue
		}
		hi := rune(utf8.MaxRune)
		if i+1 < len(runs) {
			hi = rune(runs[i+1]>>8) - 1
		}
		out = append(out, [2]rune{rune(x >> 8), hi})
	}
	return out
}

func join(a, b [][2]rune) [][2]rune {
	out := append(slices.Clone(a), b...)
	sort.Slice(out, func(i, j int) bool { return out[i][0] < out[j][0] })
	return out
}

// Complement returns the ranges of all characters that are not in r, which is sorted and disjoint, as the result is.
func Complement(r [][2]rune) [][2]rune {
	var out [][2]rune
	next := rune(0)
	for _, x := range r {
		if x[0] > next {
			out = append(out, [2]rune{next, x[0] - 1})
		}
		next = x[1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, [2]rune{next, utf8.MaxRune})
	}
	return out
}

// Folds calls f with every set of characters that (?i) of Oniguruma takes for one. f must not keep the slice.
func Folds(f func(orbit []rune)) { records(foldText, f) }

// MultiFolds calls f with every character that (?i) of Oniguruma also takes for two or three others in a row.
// f must not keep the slice.
func MultiFolds(f func(r rune, to []rune)) {
	records(multiText, func(r []rune) { f(r[0], r[1:]) })
}

func records(text string, f func([]rune)) {
	var buf [8]rune
	r := buf[:0]
	for _, c := range text {
		if c == 0 {
			f(r)
			r = buf[:0]
		} else {
			r = append(r, c)
		}
	}
}

// HFScript returns a number for the script that the pre-tokenizer UnicodeScripts gives r, by an old table in
// which Hiragana, Katakana and U+30FC are Han. 0 means no script: the space, and characters that the table lacks.
func HFScript(r rune) int {
	lo, hi := 0, len(hfScriptRuns)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if rune(hfScriptRuns[m]>>8) <= r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 {
		return 0
	}
	return int(hfScriptRuns[lo-1] & 0xFF)
}
