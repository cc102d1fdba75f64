// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

func (t *Tokenizer) readNormalizer(s jsonr.Span) error {
	p := part{path: "normalizer", span: s}
	var g []growth
	if err := t.normalizer(p, &g); err != nil {
		return err
	}
	return p.checkGrowth(g)
}

// normalizer appends the steps of a normalizer, and how they lengthen texts to g.
func (t *Tokenizer) normalizer(p part, g *[]growth) error {
	if p.null() {
		return nil
	}
	kind, err := p.kind()
	if err != nil {
		return err
	}
	if kind == "Sequence" {
		parts, err := p.list("normalizers")
		for _, q := range parts {
			if err == nil {
				err = t.normalizer(q, g)
			}
		}
		return err
	}
	if len(t.norm) == maxNormalizers {
		return p.fail(ErrLimit, "more than %d normalizers", maxNormalizers)
	}
	if t.inserts && kind != "Replace" && kind != "Prepend" {
		return p.refuse("%s after a %s", kind, insertion)
	}
	step, err := t.readStep(p, kind, g)
	if err == nil {
		t.norm = append(t.norm, step)
	}
	return err
}

// insertion describes normalizers whose result ByteLevel and most normalizers cannot process in the reference, which panics or encodes text twice.
const insertion = "Replace or Prepend that may insert text before the first character, where the reference fails"

// readStep reads one normalizer and appends how it lengthens texts to g.
func (t *Tokenizer) readStep(p part, kind string, g *[]growth) (normal.Step, error) {
	plain := func(s normal.Step) (normal.Step, error) { return s, p.fields(&struct{ Type string }{}) }
	if f, ok := growthOf[kind]; ok {
		*g = append(*g, growth{any: true, factor: f, unicode: true})
	}
	switch kind {
	case "NFC":
		return plain(normal.NFC())
	case "NFD":
		return plain(normal.NFD())
	case "NFKC":
		return plain(normal.NFKC())
	case "NFKD":
		return plain(normal.NFKD())
	case "Lowercase":
		return plain(normal.Lowercase())
	case "StripAccents":
		return plain(normal.StripAccents())
	case "Nmt":
		return plain(normal.Nmt())
	case "ByteLevel":
		return plain(normal.ByteLevel())
	case "Strip":
		var v struct {
			Type  string
			Left  bool `json:"strip_left"`
			Right bool `json:"strip_right"`
		}
		err := p.fields(&v)
		return normal.Strip(v.Left, v.Right), err
	case "Prepend":
		var v struct{ Type, Prepend string }
		err := p.fields(&v)
		if len(v.Prepend) > maxPrepend {
			return nil, p.fail(ErrLimit, "%d bytes to prepend, the limit is %d", len(v.Prepend), maxPrepend)
		}
		t.inserts = t.inserts || v.Prepend == "" // the first character, in the reference
		return normal.Prepend(v.Prepend), err
	case "Replace":
		r, err := readReplace(p)
		if err != nil {
			return nil, err
		}
		*g = append(*g, r.growth())
		t.inserts = t.inserts || r.x != nil && r.x.MatchesEmpty() && r.content != ""
		return r.step(), nil
	case "Precompiled":
		var v struct {
			Type string
			Map  []byte `json:"precompiled_charsmap"`
		}
		if err := p.fields(&v); err != nil {
			return nil, err
		}
		s, longest, err := normal.Precompiled(v.Map)
		if err != nil {
			return nil, p.fail(ErrFormat, "%s", err)
		}
		*g = append(*g, growth{any: true, factor: float64(longest), unicode: true})
		if longest > maxReplaced {
			return nil, p.fail(ErrLimit, "a replacement of %d bytes, the limit is %d", longest, maxReplaced)
		}
		return s, nil
	case "BertNormalizer":
		v := struct {
			Type      string
			CleanText bool  `json:"clean_text"`
			Chinese   bool  `json:"handle_chinese_chars"`
			Accents   *bool `json:"strip_accents"`
			Lowercase bool
		}{CleanText: true, Chinese: true, Lowercase: true}
		err := p.fields(&v)
		strip := v.Lowercase
		if v.Accents != nil {
			strip = *v.Accents
		}
		return normal.Bert(v.CleanText, v.Chinese, strip, v.Lowercase), err
	}
	return nil, p.refuse("normalizer %q", kind)
}

// growthOf contains the factors of normalizers with fixed rules. The longest compatibility decomposition has 33 bytes for
// 3; BertNormalizer decomposes canonically and puts spaces around characters.
var growthOf = map[string]float64{"NFC": 3, "NFD": 4, "NFKC": 11, "NFKD": 11, "Lowercase": 1.5, "ByteLevel": 2, "BertNormalizer": 6}

// pattern is the form of patterns in files; one field is set.
type pattern struct{ Regex, String *string }

func (v pattern) compile(p part) (*pretok.Pattern, error) {
	switch {
	case v.String != nil && v.Regex == nil:
		if *v.String == "" {
			return nil, p.refuse("an empty pattern")
		}
		x, err := pretok.Literal(*v.String)
		if err != nil {
			return nil, p.refuse("pattern %q: %v", *v.String, err)
		}
		return x, nil
	case v.Regex != nil && v.String == nil:
		x, err := pretok.Compile(*v.Regex)
		if err != nil {
			return nil, p.refuse("pattern %q: %v", *v.Regex, err)
		}
		return x, nil
	}
	return nil, p.fail(ErrFormat, "has no pattern, or two")
}

// replacement is a Replace component: all matches of a pattern become content.
type replacement struct {
	literal string // what to find, if x is nil
	x       *pretok.Pattern
	content string
}

func readReplace(p part) (replacement, error) {
	var v struct {
		Type    string
		Pattern pattern
		Content string
	}
	if err := p.fields(&v); err != nil {
		return replacement{}, err
	}
	if v.Pattern.String != nil && *v.Pattern.String != "" && v.Pattern.Regex == nil {
		return replacement{literal: *v.Pattern.String, content: v.Content}, nil
	}
	x, err := v.Pattern.compile(p)
	return replacement{x: x, content: v.Content}, err
}

// blanks matches runs of white space, as \s+ does.
type blanks struct{}

// Find implements normal.Matcher.
func (blanks) Find(s string, from int) (start, end int, ok bool) {
	for i := from; i < len(s); {
		c, n := unidata.ASCII[s[i]&0x7F], 1
		if s[i] >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			c = unidata.Class(r)
		}
		if c&unidata.Space != 0 {
			return i, spaceAfter(s, i), true
		}
		i += n
	}
	return 0, 0, false
}

func (r replacement) step() normal.Step {
	if r.x == nil {
		return normal.Replace(r.literal, r.content)
	}
	if r.x.String() == `\s+` {
		return normal.ReplaceMatches(blanks{}, r.content)
	}
	return normal.ReplaceMatches(r.x, r.content)
}

// apply returns s with all matches replaced.
func (r replacement) apply(s string) string {
	if r.x == nil {
		return strings.ReplaceAll(s, r.literal, r.content)
	}
	if s == "" { // without matches, in the reference
		return s
	}
	var b strings.Builder
	at := 0
	for i, j := range r.x.All(s) {
		b.WriteString(s[at:i])
		b.WriteString(r.content)
		at = j
	}
	b.WriteString(s[at:])
	return b.String()
}
