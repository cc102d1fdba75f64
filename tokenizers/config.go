// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// Config is what the files beside tokenizer.json say about the model. All of it is optional.
type Config struct {
	BOS, EOSToken, Pad string   // spellings; empty if not given
	EOS                []uint32 // ids that end a generation
	ChatTemplate       string   // the Jinja source; empty if there is none
	// MaxLength is model_max_length in tokens, 0 if it is not given or not a plain number.
	MaxLength int64
}

func (t *Tokenizer) readConfig(fsys fs.FS) error {
	var v struct {
		BOS          tokenName       `json:"bos_token"`
		EOS          tokenName       `json:"eos_token"`
		Pad          tokenName       `json:"pad_token"`
		ChatTemplate json.RawMessage `json:"chat_template"`
		MaxLength    json.Number     `json:"model_max_length"`
	}
	if err := readJSON(fsys, "tokenizer_config.json", &v); err != nil {
		return err
	}
	c := &t.config
	c.BOS, c.EOSToken, c.Pad = string(v.BOS), string(v.EOS), string(v.Pad)
	if n, err := v.MaxLength.Int64(); err == nil {
		c.MaxLength = n
	}
	_ = json.Unmarshal(v.ChatTemplate, &c.ChatTemplate) // a list of named templates is not a string
	if b, err := readFile(fsys, "chat_template.jinja"); err == nil {
		c.ChatTemplate = string(b)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var g struct {
		EOS tokenIDs `json:"eos_token_id"`
	}
	if err := readJSON(fsys, "generation_config.json", &g); err != nil {
		return err
	}
	if c.EOS = g.EOS; len(c.EOS) == 0 && c.EOSToken != "" {
		if id, ok := t.TokenID(c.EOSToken); ok {
			c.EOS = []uint32{id}
		}
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
		e := &Error{File: name, Offset: -1, Reason: clip(err.Error()), Err: ErrFormat}
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.Place, e.Offset = t.Field, t.Offset
		}
		return e
	}
	return nil
}

// tokenName is a token given as a string, as an object with content, or as null.
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

// tokenIDs is an id, a list of ids, or null.
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
