// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-go/weft/kvhash"
)

// maxBlock is the largest block in tokens, far beyond what engines have; offsets of objects are bounded by some hundred times that.
const (
	maxBlock  = 1 << 20
	maxOffset = maxBlock << 9
)

// settings come from flags, and from records, which go before.
type settings struct {
	Scheme    string
	Block     int
	Seed      text
	Salt      text
	LoRA      text
	Model     string
	NoneHash  string `json:"none_hash"`
	Eagle     bool
	Universal bool
	Bare      bool
}

// text is a string, or a number as it is written.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
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

func (s *settings) scheme() (kvhash.Scheme, error) {
	o := kvhash.Options{
		LoRA: string(s.LoRA), Salt: string(s.Salt), Seed: string(s.Seed), Model: s.Model,
		Eagle: s.Eagle, Universal: s.Universal, BareObjects: s.Bare,
	}
	if s.NoneHash != "" {
		var err error
		if o.NoneHash, err = hex.DecodeString(s.NoneHash); err != nil {
			return kvhash.Scheme{}, fmt.Errorf("none_hash: %w", err)
		}
	}
	return kvhash.ByName(s.Scheme, &o)
}

// record is a line of input.
type record struct {
	ID     json.RawMessage
	Tokens json.RawMessage
	settings
	MM      [][]entry
	Objects []object
}

// tokens returns the ids of the prompt. A null among them is no id, though the decoder would make it 0.
func (r *record) tokens() ([]uint32, error) {
	var ids []uint32
	if err := json.Unmarshal(r.Tokens, &ids); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if i := bytes.Index(r.Tokens, []byte("null")); i >= 0 {
		return nil, fmt.Errorf("tokens[%d] is null", bytes.Count(r.Tokens[:i], []byte(",")))
	}
	return ids, nil
}

// object is an object by its position in the prompt.
type object struct {
	Hash text
	ID   string
	At   int
	Len  int
}

// entry is an object in one block: an identifier or a hash, with an offset if it came as a pair.
type entry struct {
	name   text
	offset int
	pair   bool
}

func (e *entry) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return e.name.UnmarshalJSON(b)
	}
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("mm: an entry has %d parts, want an identifier and an offset", len(pair))
	}
	e.pair = true
	if err := e.name.UnmarshalJSON(pair[0]); err != nil {
		return err
	}
	if err := json.Unmarshal(pair[1], &e.offset); err != nil {
		return err
	}
	if e.offset < -maxOffset || e.offset > maxOffset {
		return fmt.Errorf("mm: offset %d is out of range", e.offset)
	}
	return nil
}

// extras returns what the record holds besides tokens, nil for nothing. It sets Bare if the entries of mm have no offsets.
func (r *record) extras(tokens int) (*kvhash.Extras, error) {
	if r.MM == nil && r.Objects == nil {
		return nil, nil
	}
	switch {
	case r.MM != nil && r.Objects != nil:
		return nil, errors.New("mm and objects say the same: give one of them")
	case r.Scheme == "sglang" || r.Scheme == "trtllm":
		return nil, fmt.Errorf("scheme %s mixes no objects into its hashes: give its tokens for them", r.Scheme)
	case r.MM != nil && r.Universal:
		return nil, errors.New("the universal form needs the positions of objects: give objects, not mm")
	case len(r.MM) > (tokens+r.Block-1)/r.Block:
		return nil, fmt.Errorf("mm is for %d blocks, the prompt has %d tokens", len(r.MM), tokens)
	}
	x := new(kvhash.Extras)
	end := -maxOffset
	for i, o := range r.Objects {
		if o.At < end || o.Len <= 0 || o.At > maxOffset || o.Len > maxOffset {
			return nil, fmt.Errorf("objects[%d]: tokens %d and %d more are not behind the one before it", i, o.At, o.Len)
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
					return nil, fmt.Errorf("mm[%d]: offset %d is not in a block of %d", i, e.offset, r.Block)
				}
				if n := len(x.Objects); n > 0 && x.Objects[n-1].At == k.At && x.Objects[n-1].ID == k.ID {
					x.Objects[n-1].Len = k.Len // it goes on from the block before
					continue
				}
				if k.At < start && i > 0 {
					return nil, fmt.Errorf("mm[%d]: an object that began %d tokens earlier is not in the block before", i, -e.offset)
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
		r.Bare = r.Bare || bare > 0
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
		return o, errors.New("an object has neither a hash nor an identifier")
	}
	n, err := strconv.ParseUint(string(hash), 10, 64)
	if err != nil && r.Scheme == "dynamo" {
		return o, fmt.Errorf("hash %q is not a decimal number of 64 bits", hash)
	}
	o.Hash = n
	return o, nil
}
