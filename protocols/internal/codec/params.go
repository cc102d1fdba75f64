// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// This file contains the parameters that the Chat and Completions APIs spell the same way, except for log
// probabilities.

// Sampling reads the parameters of token selection.
func (r *Reader) Sampling(root jsonscan.Value, s *block.Sampling) {
	s.Temperature, s.TopP, s.MinP = r.Float(root.Get("temperature")), r.Float(root.Get("top_p")), r.Float(root.Get("min_p"))
	s.TopK, s.Seed, s.N = r.Int(root.Get("top_k")), r.Int(root.Get("seed")), r.Int(root.Get("n"))
	s.FrequencyPenalty, s.PresencePenalty = r.Float(root.Get("frequency_penalty")), r.Float(root.Get("presence_penalty"))
	s.RepetitionPenalty = r.Float(root.Get("repetition_penalty"))
	s.Stop, s.StopTokens = r.stop(root.Get("stop"))
	if ids := r.List(root.Get("stop_token_ids")); ids.Exists() {
		for e := ids.First(); e.Exists(); e = ids.Next(e) {
			s.StopTokens = r.appendID(s.StopTokens, e, "an integer")
		}
	}
	s.IgnoreEOS = r.Bool(root.Get("ignore_eos"))
}

// stop reads a string, or an array of strings and token IDs.
func (r *Reader) stop(v jsonscan.Value) (texts []string, ids []int64) {
	if v.Kind() != jsonscan.Array {
		return r.Strs(v), nil
	}
	texts = make([]string, 0, v.Len())
	for e := v.First(); e.Exists(); e = v.Next(e) {
		if e.Kind() == jsonscan.String {
			texts = append(texts, r.Str(e))
		} else {
			ids = r.appendID(ids, e, "a string or the ID of a token")
		}
	}
	return texts, ids
}

// appendID appends the ID of a token. want describes what v may be.
func (r *Reader) appendID(ids []int64, v jsonscan.Value, want string) []int64 {
	n, ok := v.Int()
	if !ok {
		r.Want(v, want)
		return ids
	}
	return append(ids, n)
}

// Format reads response_format.
func (r *Reader) Format(root jsonscan.Value, f *block.Format) {
	v := r.Object(root.Get("response_format"))
	f.Type = r.Str(v.Get("type"))
	r.Schema(r.Object(v.Get("json_schema")), f)
}

// Schema reads the fields of v, a format of type json_schema.
func (r *Reader) Schema(v jsonscan.Value, f *block.Format) {
	f.Name, f.Schema, f.Strict = r.Str(v.Get("name")), r.Raw(v.Get("schema")), r.BoolPtr(v.Get("strict"))
	f.Description = r.Str(v.Get("description"))
}

// Sampling appends the fields that [Reader.Sampling] reads.
func (m *Members) Sampling(s *block.Sampling) {
	m.Float("temperature", s.Temperature)
	m.Float("top_p", s.TopP)
	m.Float("min_p", s.MinP)
	m.Int("top_k", "", s.TopK)
	m.Int("seed", "", s.Seed)
	m.Int("n", "", s.N)
	m.Float("frequency_penalty", s.FrequencyPenalty)
	m.Float("presence_penalty", s.PresencePenalty)
	m.Float("repetition_penalty", s.RepetitionPenalty)
	m.Strs("stop", s.Stop)
	if len(s.StopTokens) > 0 {
		raws := make([][]byte, len(s.StopTokens))
		for i, id := range s.StopTokens {
			raws[i] = Int(id)
		}
		m.Add("stop_token_ids", "", Array(raws))
	}
	m.True("ignore_eos", s.IgnoreEOS)
}

// Format appends response_format unless it is empty.
func (m *Members) Format(f *block.Format) {
	if f.Type == "" {
		return
	}
	o := Open(nil)
	o.Str("type", f.Type)
	if f.Type == "json_schema" {
		in := Open(nil)
		in.Schema(f)
		o.Raw("json_schema", in.Close())
	}
	m.Add("response_format", "", o.Close())
}

// Schema adds the fields that [Reader.Schema] reads. A format without a name, which the APIs require, is named
// "answer".
func (o *Obj) Schema(f *block.Format) {
	o.Str("name", cmp.Or(f.Name, "answer"))
	o.OptStr("description", f.Description)
	o.OptRaw("schema", f.Schema)
	if f.Strict != nil {
		o.Bool("strict", *f.Strict)
	}
}
