// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// config holds optional settings from the files next to tokenizer.json.
type config struct {
	bos, eos, pad string // tokens as spelled in the vocabulary; empty if not specified
	maxLength     int64
}

// readConfig reads the settings. Settings that t already has are defaults.
func (t *Tokenizer) readConfig(fsys fs.FS) error {
	var v struct {
		BOS       tokenName   `json:"bos_token"`
		EOS       tokenName   `json:"eos_token"`
		Pad       tokenName   `json:"pad_token"`
		MaxLength json.Number `json:"model_max_length"`
	}
	if err := readJSON(fsys, "tokenizer_config.json", &v); err != nil {
		return err
	}
	c := &t.config
	c.bos, c.eos, c.pad = cmp.Or(string(v.BOS), c.bos), cmp.Or(string(v.EOS), c.eos), cmp.Or(string(v.Pad), c.pad)
	if n, err := v.MaxLength.Int64(); err == nil {
		c.maxLength = n
	}
	var g struct {
		EOS tokenIDs `json:"eos_token_id"`
	}
	if err := readJSON(fsys, "generation_config.json", &g); err != nil {
		return err
	}
	if len(g.EOS) > 0 {
		t.eos = g.EOS
	} else if id, ok := t.TokenID(string(v.EOS)); ok && v.EOS != "" {
		t.eos = []uint32{id}
	}
	return nil
}

// readJSON reads an optional file.
func readJSON(fsys fs.FS, name string, v any) error {
	b, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r := jsonr.New(jsonr.Span{Data: b}, "")
	walkJSON(r)
	if err := r.End(); err != nil {
		return inFile(name, malformed(err))
	}
	if err := json.Unmarshal(b, v); err != nil {
		e := &Error{file: name, Offset: -1, reason: clip(err.Error()), err: ErrFormat}
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.field, e.Offset = t.Field, t.Offset
		}
		return e
	}
	return nil
}

// tokenName is decoded from a string, an object with the field content, or null.
type tokenName string

// UnmarshalJSON accepts all three forms.
func (n *tokenName) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if s != nil {
			*n = tokenName(*s)
		}
		return nil
	}
	var o struct{ Content string }
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	*n = tokenName(o.Content)
	return nil
}

// tokenIDs is decoded from an id, a list of ids, or null.
type tokenIDs []uint32

// UnmarshalJSON accepts all three forms.
func (ids *tokenIDs) UnmarshalJSON(b []byte) error {
	var list []*uint32
	var one *uint32
	if err := json.Unmarshal(b, &one); err == nil {
		if one != nil {
			*ids = tokenIDs{*one}
		}
		return nil
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for _, id := range list {
		if id == nil {
			return errors.New("null among token ids")
		}
		*ids = append(*ids, *id)
	}
	return nil
}
