// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

const configFile = "tokenizer_config.json"

// maxDeclared is well above the number of added tokens of any model.
const maxDeclared = 1 << 17

// declared contains the added tokens declared in tokenizer_config.json.
type declared struct {
	added []AddedToken // added_tokens_decoder, by id
	// named contains the tokens of bos_token and similar fields, additional_special_tokens and extra_special_tokens, in
	// the order in which transformers adds them.
	named []AddedToken
	// byName contains those of named that one field has.
	byName map[string]AddedToken
	kimi   bool // tokenizer_class names Kimi's Python code
}

// readDeclared reads tokenizer_config.json, if present. It also checks the parts that are not used.
func readDeclared(fsys fs.FS) (d declared, err error) {
	data, err := readFile(fsys, configFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	d, err = parseDeclared(data)
	return d, inFile(configFile, err)
}

// namedTokens lists the fields with one token each, in transformers' order.
var namedTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

func parseDeclared(data []byte) (d declared, err error) {
	one := make([]AddedToken, len(namedTokens))
	var lists [2][]AddedToken
	r := jsonr.New(jsonr.Span{Data: data}, "")
	var key []byte
	seen := map[string]bool{}
	for r.Object(); r.Key(&key); {
		k := string(key)
		i := slices.Index(namedTokens, k)
		used := i >= 0 || k == "added_tokens_decoder" || k == "additional_special_tokens" || k == "extra_special_tokens"
		if used && seen[k] {
			r.Fail("appears twice")
		}
		switch c := r.Peek(); {
		case used:
			seen[k] = true
			switch {
			case i >= 0:
				one[i] = readToken(r)
			case k == "added_tokens_decoder":
				d.added = readDecoder(r)
			case k == "additional_special_tokens":
				lists[0] = readTokens(r)
			default:
				lists[1] = readTokens(r)
			}
		case k == "auto_map" && c == '{':
			s := r.Raw()
			d.kimi = strings.Contains(string(s.Data), `"tokenization_kimi.`)
			q := jsonr.New(s, k)
			walkJSON(q)
			if err := q.End(); err != nil {
				return d, malformed(err)
			}
		default:
			walkJSON(r)
		}
	}
	if err := r.End(); err != nil {
		return d, malformed(err)
	}
	for i, a := range slices.Concat(one, lists[0], lists[1]) {
		if a.Content == "" {
			continue
		}
		d.named = append(d.named, a)
		if i < len(one) {
			if d.byName == nil {
				d.byName = make(map[string]AddedToken)
			}
			d.byName[namedTokens[i]] = a
		}
	}
	return d, nil
}

// walkJSON reads and checks the next value.
func walkJSON(r *jsonr.Reader) {
	var buf []byte
	switch r.Peek() {
	case '{':
		for r.Object(); r.Key(&buf); {
			walkJSON(r)
		}
	case '[':
		for r.Array(); r.Next(); {
			walkJSON(r)
		}
	case '"':
		r.String(nil)
	default:
		r.Skip()
	}
}

// readToken reads a token given as a string, as an object with content, or as null. Flags that an object omits have the
// values of AddedToken(content, special=True) in Python.
func readToken(r *jsonr.Reader) (a AddedToken) {
	switch r.Peek() {
	case '"':
		a.Content = string(r.String(nil))
	case '{':
		a = readFlags(r)
	default:
		if s := r.Raw(); r.Err() == nil && string(s.Data) != "null" && string(s.Data) != "false" {
			r.Fail("is no token")
		}
	}
	a.Special = true
	return a
}

// readTokens reads a list of tokens, or an object of them by name.
func readTokens(r *jsonr.Reader) (list []AddedToken) {
	add := func() {
		if len(list) == maxDeclared {
			r.Fail("is one of more than %d tokens", maxDeclared)
		}
		list = append(list, readToken(r))
	}
	var key []byte
	switch r.Peek() {
	case '[':
		for r.Array(); r.Next(); {
			add()
		}
	case '{':
		for r.Object(); r.Key(&key); {
			add()
		}
	default:
		if s := r.Raw(); r.Err() == nil && string(s.Data) != "null" {
			r.Fail("is no list of tokens")
		}
	}
	return list
}

// readDecoder reads {"151643": {"content": …, "special": true, …}, …} and orders it by id.
func readDecoder(r *jsonr.Reader) (list []AddedToken) {
	if r.Peek() == 'n' {
		r.Skip()
		return nil
	}
	var key []byte
	ids := map[uint32]bool{}
	for r.Object(); r.Key(&key); {
		id, err := strconv.ParseUint(string(key), 10, 32)
		switch {
		case err != nil:
			r.Fail("is no id")
		case id > vocab.MaxID:
			r.Fail("exceeds the limit %d", vocab.MaxID)
		case ids[uint32(id)]:
			r.Fail("appears twice")
		case len(list) == maxDeclared:
			r.Fail("is one of more than %d tokens", maxDeclared)
		case r.Peek() != '{':
			r.Fail("is no object")
		}
		if r.Err() != nil {
			return nil
		}
		ids[uint32(id)] = true
		a := readFlags(r)
		a.ID = uint32(id)
		list = append(list, a)
	}
	slices.SortStableFunc(list, func(a, b AddedToken) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// readFlags reads the fields of an AddedToken as Python's constructor does. Omitted flags are false, except normalized,
// which defaults to the opposite of special. Unknown fields are skipped.
func readFlags(r *jsonr.Reader) (a AddedToken) {
	var key []byte
	content, normalized := false, false
	seen := map[string]bool{}
	flag := func(to *bool) {
		switch s := r.Raw(); string(s.Data) {
		case "true":
			*to = true
		case "false":
			*to = false
		default:
			r.Fail("is neither true nor false")
		}
	}
	for r.Object(); r.Key(&key); {
		k := string(key)
		if len(seen) < maxFields {
			if seen[k] {
				r.Fail("appears twice")
			}
			seen[k] = true
		}
		switch k {
		case "content":
			a.Content = string(r.String(nil))
			content = true
		case "special":
			flag(&a.Special)
		case "normalized":
			flag(&a.normalized)
			normalized = true
		case "lstrip":
			flag(&a.lStrip)
		case "rstrip":
			flag(&a.rStrip)
		case "single_word":
			flag(&a.singleWord)
		default:
			walkJSON(r)
		}
	}
	if r.Err() == nil && !content {
		r.Fail("a token without content")
	}
	if !normalized {
		a.normalized = !a.Special
	}
	return a
}

// mergeDeclared returns the added tokens of transformers' PreTrainedTokenizerFast (4.57 and 5.0, __init__), in the
// order in which it adds them: the tokens of tokenizer.json, added_tokens_decoder in the order of ids, then the named
// tokens whose text is not among them. size is the number of entries in the model's vocabulary. changed is false if the
// result equals have.
func mergeDeclared(have []AddedToken, size uint32, modelID func(string) (uint32, bool), d declared) (list []AddedToken, changed bool) {
	l := newAdding(have, size, modelID)
	names := map[string]bool{}
	for _, a := range d.named {
		names[a.Content] = true
	}
	for _, a := range d.added {
		a.Special = a.Special || names[a.Content]
		l.add(a)
	}
	for _, a := range d.named {
		if _, known := l.at[a.Content]; !known {
			l.add(a)
		}
	}
	return l.list, l.changed
}

// mergeConfig adds to t the tokens that tokenizer_config.json declares in addition to tokenizer.json. See
// [mergeDeclared].
func (t *Tokenizer) mergeConfig(fsys fs.FS) error {
	d, err := readDeclared(fsys)
	if err != nil {
		return err
	}
	return t.mergeDeclared(d)
}

func (t *Tokenizer) mergeDeclared(d declared) error {
	list, changed := mergeDeclared(t.added, uint32(t.vocab.Count()+len(t.spell.ids)), t.modelID, d)
	if !changed {
		return nil
	}
	for _, a := range list {
		if a.ID > vocab.MaxID {
			return &Error{file: configFile, field: "added_tokens_decoder", Offset: -1, reason: fmt.Sprintf("id %d, the limit is %d", a.ID, vocab.MaxID), err: ErrLimit}
		}
	}
	t.added = list
	t.addedAt, t.idAt = map[string]int32{}, map[uint32]int32{}
	t.raw, t.normal, t.reachable, t.standIn = nil, nil, false, nil
	if err := t.indexAdded(part{path: "added_tokens_decoder", span: jsonr.Span{Offset: -1}}); err != nil {
		return inFile(configFile, err)
	}
	return t.buildDecoder()
}
