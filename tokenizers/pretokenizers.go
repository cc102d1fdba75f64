// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
)

func (t *Tokenizer) readPreTokenizer(s jsonr.Span) error {
	t.mapped = -1
	if err := t.preTokenizer(part{path: "pre_tokenizer", span: s}); err != nil {
		return err
	}
	rewritten := len(t.norm) > 0
	for k, st := range t.steps {
		t.origins = t.origins || st.first && rewritten
		// Metaspace's replacement, before it adds a space at the start, does not move characters.
		rewritten = rewritten || st.rewrite != nil && (k+1 == len(t.steps) || !t.steps[k+1].first)
	}
	return nil
}

// preTokenizer appends the steps of a pre-tokenizer.
func (t *Tokenizer) preTokenizer(p part) error {
	if p.null() {
		return nil
	}
	kind, err := p.kind()
	if err != nil {
		return err
	}
	if len(t.steps) >= maxPreTokenizers {
		return p.fail(ErrLimit, "more than %d steps", maxPreTokenizers)
	}
	cut := func(s pretok.Splitter, fields any) error {
		t.steps = append(t.steps, step{cut: s})
		return p.fields(fields)
	}
	plain := &struct{ Type string }{}
	switch kind {
	case "Sequence":
		parts, err := p.list("pretokenizers")
		for _, q := range parts {
			if err == nil {
				err = t.preTokenizer(q)
			}
		}
		return err
	case "Split":
		return t.split(p)
	case "ByteLevel":
		return t.byteLevel(p)
	case "Metaspace":
		return t.metaspace(p)
	case "Whitespace":
		return cut(pretok.Whitespace{}, plain)
	case "WhitespaceSplit":
		return cut(pretok.WhitespaceSplit{}, plain)
	case "BertPreTokenizer":
		return cut(pretok.Bert{}, plain)
	case "UnicodeScripts":
		return cut(pretok.UnicodeScripts{}, plain)
	case "Punctuation":
		v := struct{ Type, Behavior string }{Behavior: "Isolated"}
		if err := p.fields(&v); err != nil {
			return err
		}
		b, ok := pretok.ParseBehavior(v.Behavior)
		if !ok {
			return p.refuse("Punctuation with behavior %q", v.Behavior)
		}
		t.steps = append(t.steps, step{cut: pretok.Punctuation{Behavior: b}})
		return nil
	case "Digits":
		var v struct {
			Type       string
			Individual bool `json:"individual_digits"`
		}
		if err := p.fields(&v); err != nil {
			return err
		}
		t.steps = append(t.steps, step{cut: pretok.Digits{Individual: v.Individual}})
		return nil
	case "CharDelimiterSplit":
		var v struct{ Type, Delimiter string }
		if err := p.fields(&v); err != nil {
			return err
		}
		r, n := utf8.DecodeRuneInString(v.Delimiter)
		if n == 0 || n != len(v.Delimiter) {
			return p.fail(ErrFormat, "delimiter is not one character")
		}
		t.steps = append(t.steps, step{cut: pretok.CharDelimiter{Delimiter: r}})
		return nil
	case "FixedLength":
		v := struct {
			Type   string
			Length int
		}{Length: 5}
		if err := p.fields(&v); err != nil {
			return err
		}
		if v.Length < 1 {
			return p.fail(ErrFormat, "length is not positive")
		}
		t.steps = append(t.steps, step{cut: pretok.FixedLength{Length: v.Length}})
		return nil
	}
	return p.refuse("pre-tokenizer %q", kind)
}

func (t *Tokenizer) split(p part) error {
	var v struct {
		Type     string
		Pattern  pattern
		Behavior string
		Invert   bool
	}
	if err := p.fields(&v); err != nil {
		return err
	}
	b, ok := pretok.ParseBehavior(v.Behavior)
	if !ok {
		return p.refuse("Split with behavior %q", v.Behavior)
	}
	if b == pretok.Isolated && v.Pattern.Regex != nil && v.Pattern.String == nil && !v.Invert {
		if f, ok := pretok.Lookup(*v.Pattern.Regex); ok {
			t.steps = append(t.steps, step{fn: f, expr: *v.Pattern.Regex})
			if n := len(t.steps) - 3; n >= 0 { // some sequences of expressions have one scanner
				if f, ok := pretok.Lookup(t.steps[n].expr, t.steps[n+1].expr, t.steps[n+2].expr); ok {
					t.steps = append(t.steps[:n], step{fn: f})
				}
			}
			return nil
		}
	}
	var st step
	if v.Pattern.Regex == nil || v.Pattern.String != nil {
		x, err := v.Pattern.compile(p)
		if err != nil {
			return err
		}
		st.cut = &pretok.Split{Pattern: x, Behavior: b, Invert: v.Invert}
	} else {
		if b == pretok.Isolated && !v.Invert {
			st.expr = *v.Pattern.Regex
		}
		var err error
		if st.cut, err = pretok.NewSplit(*v.Pattern.Regex, b, v.Invert); err != nil {
			return p.refuse("pattern %.200q: %v", *v.Pattern.Regex, err)
		}
	}
	t.steps = append(t.steps, st)
	return nil
}

func (t *Tokenizer) byteLevel(p part) error {
	var b byteLevel
	if err := p.fields(&b); err != nil {
		return err
	}
	if t.mapped >= 0 {
		return p.refuse("a second ByteLevel")
	}
	if t.inserts {
		return p.refuse("ByteLevel after a %s", insertion)
	}
	if b.AddPrefixSpace {
		t.steps = append(t.steps, step{rewrite: normal.Prepend(" "), unless: " "})
	}
	if b.UseRegex == nil || *b.UseRegex {
		t.steps = append(t.steps, step{fn: pretok.GPT2, expr: gpt2})
	}
	t.mapped = len(t.steps)
	t.steps = append(t.steps, step{rewrite: normal.ByteLevel()})
	return nil
}

// gpt2 is the name of ByteLevel's own expression, which files do not contain.
const gpt2 = "GPT-2"

// metaspaceFields contains the settings of Metaspace as pre-tokenizer and decoder.
type metaspaceFields struct {
	replacement, scheme string
	split               bool
}

func readMetaspace(p part) (metaspaceFields, error) {
	v := struct {
		Type           string
		Replacement    string
		StrRep         string `json:"str_rep"` // older name of Replacement
		AddPrefixSpace *bool  `json:"add_prefix_space"`
		Scheme         string `json:"prepend_scheme"`
		Split          *bool
	}{Replacement: "▁", Scheme: "always"}
	if err := p.fields(&v); err != nil {
		return metaspaceFields{}, err
	}
	m := metaspaceFields{v.Replacement, v.Scheme, v.Split == nil || *v.Split}
	switch {
	case utf8.RuneCountInString(v.Replacement) != 1:
		return m, p.fail(ErrFormat, "replacement is not one character")
	case v.StrRep != "" && v.StrRep != v.Replacement:
		return m, p.refuse("Metaspace with str_rep %q", v.StrRep)
	case v.Scheme != "always" && v.Scheme != "first" && v.Scheme != "never":
		return m, p.refuse("Metaspace with prepend_scheme %q", v.Scheme)
	case v.AddPrefixSpace != nil && !*v.AddPrefixSpace && v.Scheme != "never":
		// The reference refuses this too.
		return m, p.fail(ErrFormat, "add_prefix_space does not go with prepend_scheme %q", v.Scheme)
	}
	return m, nil
}

func (t *Tokenizer) metaspace(p part) error {
	m, err := readMetaspace(p)
	if err != nil {
		return err
	}
	t.steps = append(t.steps, step{rewrite: normal.Replace(" ", m.replacement)})
	if m.scheme != "never" {
		if _, ok := bytelevel.Decode(nil, []byte(m.replacement)); t.mapped >= 0 && !ok {
			return p.refuse("Metaspace after ByteLevel, which writes %q, a character that represents no byte", m.replacement)
		}
		t.steps = append(t.steps, step{rewrite: normal.Prepend(m.replacement), unless: m.replacement, first: m.scheme == "first"})
	}
	if m.split {
		r, _ := utf8.DecodeRuneInString(m.replacement)
		t.steps = append(t.steps, step{cut: pretok.Metaspace{Replacement: r, Split: true}})
	}
	return nil
}
