// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/tiktoken"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

const tekkenFile = "tekken.json"

// tekkenVersions maps each value of config.version to whether a file may omit its special tokens. Source:
// mistral-common 1.12 (commit bc022b9), tokens/tokenizers/base.py and tekken.py.
var tekkenVersions = map[string]bool{"v1": true, "v2": true, "v3": true, "v7": true, "v11": false, "v13": false, "v15": false}

// tekkenSpecial lists, by id, the special tokens of files without a list of them.
var tekkenSpecial = []string{
	"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
	"[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]",
	"[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
}

// loadTekken reads Mistral's tekken.json.
//
//	{"config": {"pattern": …, "default_vocab_size": 131072, "default_num_special_tokens": 1000, "version": "v3", …},
//	 "vocab": [{"rank": 0, "token_bytes": "AA==", "token_str": "\u0000"}, …],
//	 "special_tokens": [{"rank": 0, "token_str": "<unk>", "is_control": true}, …]}
//
// The rules follow mistral-common 1.12. Special tokens have the ids below default_num_special_tokens; ids after the end
// of the list are named <SPECIAL_20> and so on. In files up to v7 without a list, the first twenty are built in. Ids of
// the vocabulary are rank + default_num_special_tokens, and entries beyond default_vocab_size are ignored. <s> is added
// before the text on request. Fields for images and audio are skipped.
func loadTekken(data []byte, file string) (*Tokenizer, error) {
	t, err := parseTekken(data)
	return t, inFile(file, err)
}

func parseTekken(data []byte) (*Tokenizer, error) {
	parts := make(map[string]jsonr.Span)
	r := jsonr.New(jsonr.Span{Data: data}, "")
	var key []byte
	for r.Object(); r.Key(&key); {
		if _, twice := parts[string(key)]; twice {
			r.Fail("appears twice")
		}
		if k := string(key); k == "config" || k == "vocab" || k == "special_tokens" || k == "type" {
			parts[k] = r.Raw()
		} else {
			r.Skip() // version of the format, always 1
		}
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	at := func(name string) (part, error) {
		s, ok := parts[name]
		if !ok {
			return part{}, &Error{field: name, Offset: -1, reason: "is missing", err: ErrFormat}
		}
		return part{path: name, span: s}, nil
	}
	p, err := at("config")
	if err != nil {
		return nil, err
	}
	c, err := readTekkenConfig(p)
	if err != nil {
		return nil, err
	}
	special, listed := parts["special_tokens"]
	m := ranked{file: tekkenFile, pattern: c.pattern}
	if listed && string(special.Data) != "null" {
		if m.added, err = readTekkenSpecial(part{path: "special_tokens", span: special}, c); err != nil {
			return nil, err
		}
	} else {
		if !tekkenVersions[c.version] {
			return nil, &Error{field: "special_tokens", Offset: -1, reason: fmt.Sprintf("is missing, which %s does not allow", c.version), err: ErrFormat}
		}
		for id, name := range tekkenSpecial {
			m.added = append(m.added, AddedToken{ID: uint32(id), Content: name, Special: true})
		}
	}
	if len(m.added) > int(c.special) {
		return nil, &Error{field: "config.default_num_special_tokens", Offset: -1, reason: fmt.Sprintf("%d special tokens, but only %d ids", len(m.added), c.special), err: ErrFormat}
	}
	names := make(map[string]bool, c.special)
	for _, a := range m.added {
		names[a.Content] = true
	}
	for id := uint32(len(m.added)); id < c.special; id++ {
		name := fmt.Sprintf("<SPECIAL_%d>", id)
		if names[name] {
			return nil, &Error{field: "special_tokens", Offset: -1, reason: fmt.Sprintf("%s is needed for id %d", name, id), err: ErrFormat}
		}
		m.added = append(m.added, AddedToken{ID: id, Content: name, Special: true})
	}
	if p, err = at("vocab"); err != nil {
		return nil, err
	}
	if m.vocab, err = readTekkenVocab(p, c); err != nil {
		return nil, err
	}
	named := func(name string) (uint32, bool) {
		i := slices.IndexFunc(m.added, func(a AddedToken) bool { return a.Content == name })
		return uint32(i), i >= 0 // the index of a special token is its id
	}
	if id, ok := named("<s>"); ok {
		m.before = []uint32{id}
	}
	t, err := m.build()
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		to   *string
		name string
	}{{&t.config.bos, "<s>"}, {&t.config.eos, "</s>"}, {&t.config.pad, "<pad>"}} {
		if _, ok := named(x.name); ok {
			*x.to = x.name
		}
	}
	if id, ok := named("</s>"); ok {
		t.eos = []uint32{id}
	}
	return t, nil
}

// tekkenConfig is the part of config that determines ids.
type tekkenConfig struct {
	pattern, version string
	size, special    uint32 // number of all ids and of special ones; special+256 <= size <= vocab.MaxID+1
}

func readTekkenConfig(p part) (c tekkenConfig, err error) {
	r := jsonr.New(p.span, p.path)
	var key, text []byte
	seen := map[string]bool{}
	for r.Object(); r.Key(&key); {
		k := string(key)
		if seen[k] {
			r.Fail("appears twice")
		}
		seen[k] = true
		switch k {
		case "pattern":
			text = r.String(text[:0])
			c.pattern = string(text)
		case "version":
			text = r.String(text[:0])
			c.version = string(text)
			if _, ok := tekkenVersions[c.version]; !ok && r.Err() == nil {
				r.Fail("version %.20q", c.version)
				return c, unsupported(r.Err())
			}
		case "default_vocab_size":
			c.size = r.Uint32()
			if c.size > vocab.MaxID+1 {
				r.Fail("exceeds the limit %d", vocab.MaxID+1)
			}
		case "default_num_special_tokens":
			c.special = r.Uint32()
			if c.special > vocab.MaxID+1 {
				r.Fail("exceeds the limit %d", vocab.MaxID+1)
			}
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return c, malformed(err)
	}
	for _, k := range []string{"pattern", "version", "default_vocab_size", "default_num_special_tokens"} {
		if !seen[k] {
			return c, part{path: p.path + "." + k, span: p.span}.fail(ErrFormat, "is missing")
		}
	}
	if c.size < c.special+256 {
		return c, p.fail(ErrFormat, "%d ids do not hold %d special tokens and all bytes", c.size, c.special)
	}
	if c.special > maxTekkenSpecial {
		return c, p.fail(ErrLimit, "%d special tokens, the limit is %d", c.special, maxTekkenSpecial)
	}
	return c, nil
}

// maxTekkenSpecial limits the memory that a small file can require. Published files have 1,000.
const maxTekkenSpecial = 1 << 14

func readTekkenSpecial(p part, c tekkenConfig) (added []AddedToken, err error) {
	r := jsonr.New(p.span, p.path)
	var key, text []byte
	seen := map[string]bool{}
	for r.Array(); r.Next(); {
		id := uint32(len(added))
		if id == c.special {
			r.Fail("is one more than %d special tokens", c.special)
			break
		}
		named, ranked := false, false
		for r.Object(); r.Key(&key); {
			switch string(key) {
			case "rank":
				// The reference encodes by rank and decodes by index, so they must be equal.
				if rank := r.Uint32(); rank != id {
					r.Fail("is %d, not %d as its position", rank, id)
				}
				ranked = true
			case "token_str":
				text = r.String(text[:0])
				named = true
			default:
				r.Skip()
			}
		}
		switch {
		case r.Err() != nil:
		case !named || !ranked:
			r.Fail("special token %d has no rank or no token_str", id)
		case len(text) == 0:
			r.Fail("special token %d is empty", id)
		case seen[string(text)]:
			r.Fail("%.100q appears twice", text)
		}
		if r.Err() != nil {
			break
		}
		seen[string(text)] = true
		added = append(added, AddedToken{ID: id, Content: string(text), Special: true})
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	return added, nil
}

func readTekkenVocab(p part, c tekkenConfig) (*vocab.Table, error) {
	n := c.size - c.special // entries that are used
	var b vocab.Builder
	b.Grow(int(min(int64(c.size), int64(len(p.span.Data)/20))), len(p.span.Data)/8)
	r := jsonr.New(p.span, p.path)
	var key, text []byte
	i := uint32(0)
	for r.Array(); r.Next(); i++ {
		if i >= n {
			r.Skip()
			continue
		}
		fields := 0
		for r.Object(); r.Key(&key); {
			switch string(key) {
			case "rank":
				fields |= 1
				if rank := r.Uint32(); rank != i {
					r.Fail("is %d, not %d as its position", rank, i)
				}
			case "token_bytes":
				fields |= 2
				text = r.String(text[:0])
			case "token_str":
				fields |= 4
				r.Skip()
			default:
				r.Fail("field %.40q", key)
				return nil, unsupported(r.Err())
			}
		}
		if r.Err() == nil && fields != 7 {
			r.Fail("has not all of rank, token_bytes and token_str")
		}
		if r.Err() != nil {
			break
		}
		token, err := base64.StdEncoding.Strict().AppendDecode(b.Scratch(), text)
		switch {
		case err != nil || slices.ContainsFunc(text, func(c byte) bool { return c == '\r' || c == '\n' }):
			r.Fail("has token_bytes that are not base64")
		case len(token) == 0 || len(token) > tiktoken.MaxToken:
			r.Fail("has %d token_bytes, not 1 to %d", len(token), tiktoken.MaxToken)
		case i < 256 && (len(token) != 1 || token[0] != byte(i)):
			r.Fail("is not the byte %#02x", i)
		default:
			if err := b.Add(i+c.special, token, true); err != nil {
				r.Fail("%s", err)
			}
		}
		if r.Err() != nil {
			break
		}
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	if i < n {
		return nil, p.fail(ErrFormat, "has %d entries, not %d", i, n)
	}
	v, err := b.Build()
	if err != nil {
		return nil, p.fail(ErrFormat, "%s", err)
	}
	return v, nil
}
