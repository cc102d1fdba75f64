// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/kvhash"
)

// maxBlock is the maximum block size in tokens, far beyond any engine's. It also limits offsets of objects, to
// some hundred times that.
const (
	maxBlock  = 1 << 20
	maxOffset = maxBlock << 9
)

// settings come from flags and from records; records take precedence.
type settings struct {
	Scheme   string
	Block    int
	Seed     text
	Salt     text
	LoRA     text
	Model    string
	NoneHash string
	Variant  string
}

// text is a string, or a number as it is written.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*t = text(n)
	return nil
}

// fieldNames maps the fields of [kvhash.Options] to names in a record; flags have hyphens instead of underscores.
var fieldNames = map[string]string{
	"LoRA": "lora", "Salt": "salt", "Seed": "seed", "NoneHash": "none_hash", "Model": "model", "Variant": "variant",
}

// fault names an invalid setting. Its name is the name of the field in a record.
type fault struct{ name, why string }

func (e *fault) Error() string { return e.name + ": " + e.why }

func (s *settings) scheme() (kvhash.Scheme, error) {
	o := kvhash.Options{
		LoRA: string(s.LoRA), Salt: string(s.Salt), Seed: string(s.Seed), Model: s.Model,
		Variant: s.Variant,
	}
	if s.NoneHash != "" {
		var err error
		if o.NoneHash, err = hex.DecodeString(s.NoneHash); err != nil {
			return kvhash.Scheme{}, &fault{"none_hash", "is not hex"}
		}
	}
	scheme, err := kvhash.Lookup(s.Scheme, &o)
	if e, ok := errors.AsType[*kvhash.OptionError](err); ok {
		if e.Option == "" {
			return scheme, &fault{"scheme", strconv.Quote(s.Scheme) + ": " + e.Why}
		}
		return scheme, &fault{fieldNames[e.Option], e.Why + " (scheme " + s.Scheme + ")"}
	}
	return scheme, err
}

// record is a line of input.
type record struct {
	ID     json.RawMessage
	Tokens json.RawMessage
	settings
	MM      [][]entry
	Objects []object
}

// read decodes the fields of line one by one, so that an error names the field and the id is kept.
func (r *record) read(line []byte) error {
	if !utf8.Valid(line) { // the decoder would replace characters and thus change the hashes
		return errors.New("is not UTF-8")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil || m == nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Errorf("is not JSON: %w, at byte %d", e, max(e.Offset-1, 0))
		}
		return errors.New("is not a JSON object")
	}
	r.ID, r.Tokens = m["id"], m["tokens"]
	const str, strOrNumber, whole = "a string", "a string or a number", "a whole number"
	for _, f := range []struct {
		name string
		to   any
		want string
	}{
		{"scheme", &r.Scheme, str}, {"block", &r.Block, whole}, {"seed", &r.Seed, strOrNumber}, {"salt", &r.Salt, strOrNumber},
		{"lora", &r.LoRA, strOrNumber}, {"model", &r.Model, str}, {"none_hash", &r.NoneHash, str},
		{"variant", &r.Variant, str},
	} {
		if err := readField(f.name, m[f.name], f.to, f.want); err != nil {
			return err
		}
	}
	if err := r.readMM(m["mm"]); err != nil {
		return err
	}
	return r.readObjects(m["objects"])
}

// readField decodes a field of an object; null is treated as absent.
func readField(name string, raw json.RawMessage, to any, want string) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, to) != nil {
		return unwanted(name, raw, want)
	}
	return nil
}

// unwanted describes the type of a field.
func unwanted(name string, raw json.RawMessage, want string) error {
	is := string(raw)
	if len(is) > 40 {
		is = strings.ToValidUTF8(is[:40], "") + "…"
	}
	return fmt.Errorf("%s is %s, want %s", name, is, want)
}

// tokens returns the ids of the prompt.
func (r *record) tokens() ([]uint32, error) {
	var ids []uint32
	if json.Unmarshal(r.Tokens, &ids) == nil && !bytes.Contains(r.Tokens, []byte("null")) { // which decodes to 0
		return ids, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(r.Tokens, &list) != nil {
		return nil, unwanted("tokens", r.Tokens, "a list of token ids")
	}
	for i, raw := range list {
		var id *uint32
		if json.Unmarshal(raw, &id) != nil || id == nil {
			return nil, unwanted(fmt.Sprintf("tokens[%d]", i), raw, "a token id, 0 to 4294967295")
		}
	}
	return nil, errors.New("tokens is not a list of token ids")
}

// object is an object by its position in the prompt.
type object struct {
	Hash text
	ID   string
	At   int
	Len  int
}

func (r *record) readObjects(raw json.RawMessage) error {
	var list []map[string]json.RawMessage
	if err := readField("objects", raw, &list, "a list of objects"); err != nil {
		return err
	}
	if list != nil {
		r.Objects = make([]object, len(list))
	}
	for i, m := range list {
		o, name := &r.Objects[i], fmt.Sprintf("objects[%d].", i)
		if err := cmp.Or(
			readField(name+"hash", m["hash"], &o.Hash, "a string or a number"), readField(name+"id", m["id"], &o.ID, "a string"),
			readField(name+"at", m["at"], &o.At, "a whole number"), readField(name+"len", m["len"], &o.Len, "a whole number"),
		); err != nil {
			return err
		}
	}
	return nil
}

// entry is an object in one block: an identifier or a hash, with an offset if it came as a pair.
type entry struct {
	name   text
	offset int
	pair   bool
}

func (r *record) readMM(raw json.RawMessage) error {
	var blocks []json.RawMessage
	if err := readField("mm", raw, &blocks, "a list with a list for each block"); err != nil {
		return err
	}
	if blocks != nil {
		r.MM = make([][]entry, len(blocks))
	}
	for i, raw := range blocks {
		var list []json.RawMessage
		name := fmt.Sprintf("mm[%d]", i)
		if err := readField(name, raw, &list, "a list of hashes or null"); err != nil {
			return err
		}
		for j, raw := range list {
			e, err := readEntry(fmt.Sprintf("%s[%d]", name, j), raw)
			if err != nil {
				return err
			}
			r.MM[i] = append(r.MM[i], e)
		}
	}
	return nil
}

func readEntry(name string, raw json.RawMessage) (e entry, err error) {
	const want = "a hash, an identifier, or a pair of one and its offset"
	if raw[0] != '[' {
		return e, readField(name, raw, &e.name, want)
	}
	var pair []json.RawMessage
	if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &e.name) != nil {
		return e, unwanted(name, raw, want)
	}
	e.pair = true
	var offset *int
	if json.Unmarshal(pair[1], &offset) != nil || offset == nil || *offset < -maxOffset || *offset > maxOffset {
		return e, unwanted(name+"[1]", pair[1], fmt.Sprintf("an offset, %d to %d", -maxOffset, maxOffset))
	}
	e.offset = *offset
	return e, nil
}

// extras returns the inputs of the hashes other than tokens, or nil. It sets Variant if the entries of mm have no offsets.
func (r *record) extras(tokens int) (*kvhash.Extras, error) {
	if r.MM == nil && r.Objects == nil {
		return nil, nil
	}
	switch {
	case r.MM != nil && r.Objects != nil:
		return nil, errors.New("mm and objects are mutually exclusive")
	case r.Scheme == "sglang" || strings.HasPrefix(r.Scheme, "trtllm"):
		return nil, fmt.Errorf("scheme %s does not hash objects; put their tokens into tokens", r.Scheme)
	case r.MM != nil && r.Variant == "universal":
		return nil, errors.New("universal requires the positions of objects: use objects instead of mm")
	case len(r.MM) > (tokens+r.Block-1)/r.Block:
		return nil, fmt.Errorf("mm has %d blocks, which does not match %d tokens", len(r.MM), tokens)
	}
	x := new(kvhash.Extras)
	end := -maxOffset
	for i, o := range r.Objects {
		if o.At < end || o.Len <= 0 || o.At > maxOffset || o.Len > maxOffset {
			return nil, fmt.Errorf("objects[%d]: at %d with len %d is not after the previous object", i, o.At, o.Len)
		}
		end = o.At + o.Len
		k, err := r.object(o.Hash, o.ID)
		if err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		k.At, k.Len = o.At, o.Len
		x.Objects = append(x.Objects, k)
	}
	pairs, bare := 0, 0
	for i, list := range r.MM {
		start := i * r.Block
		for _, e := range list {
			k, err := r.object(e.name, "")
			if err != nil {
				return nil, fmt.Errorf("mm[%d]: %w", i, err)
			}
			k.At, k.Len = start, r.Block
			if e.pair {
				pairs++
				k.At = start + e.offset
				k.Len = start + r.Block - k.At
				if e.offset >= r.Block {
					return nil, fmt.Errorf("mm[%d]: offset %d is outside a block of %d tokens", i, e.offset, r.Block)
				}
				if n := len(x.Objects); n > 0 && x.Objects[n-1].At == k.At && x.Objects[n-1].ID == k.ID {
					x.Objects[n-1].Len = k.Len // it continues from the previous block
					continue
				}
				if k.At < start && i > 0 {
					return nil, fmt.Errorf("mm[%d]: object that began %d tokens earlier is not in the previous block", i, -e.offset)
				}
			} else {
				bare++
			}
			x.Objects = append(x.Objects, k)
		}
	}
	if strings.HasPrefix(r.Scheme, "vllm_") {
		if pairs > 0 && bare > 0 {
			return nil, errors.New("mm: some entries have offsets and some do not")
		}
		if bare > 0 {
			r.Variant = "bare"
		}
	}
	return x, nil
}

// object returns the object with a hash or an identifier.
func (r *record) object(hash text, id string) (kvhash.Object, error) {
	o := kvhash.Object{ID: id}
	if id == "" {
		o.ID = string(hash)
	}
	if o.ID == "" {
		return o, errors.New("object has neither hash nor id")
	}
	n, err := strconv.ParseUint(string(hash), 10, 64)
	if err != nil && r.Scheme == "dynamo" {
		return o, fmt.Errorf("hash %q is not a 64-bit decimal number", hash)
	}
	o.Hash = n
	return o, nil
}
