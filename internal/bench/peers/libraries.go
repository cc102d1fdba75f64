// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"path/filepath"

	"github.com/gomlx/go-huggingface/tokenizers/api"
	"github.com/gomlx/go-huggingface/tokenizers/hftokenizer"
	ollama "github.com/ollama/ollama/tokenizer"
	pkoukk "github.com/pkoukk/tiktoken-go"
	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"
	tiktoken "github.com/tiktoken-go/tokenizer"
)

func convert[To, From ~int | ~int32 | ~uint32 | ~uint](ids []From) []To {
	out := make([]To, len(ids))
	for i, id := range ids {
		out[i] = To(id)
	}
	return out
}

type sugarmePeer struct{ t *tokenizer.Tokenizer }

func newSugarme(path string) (peer, error) {
	t, err := pretrained.FromFile(path)
	return sugarmePeer{t}, err
}

func (p sugarmePeer) encode(s string) ([]uint32, error) {
	e, err := p.t.EncodeSingle(s, false)
	if err != nil {
		return nil, err
	}
	return convert[uint32](e.Ids), nil
}

func (p sugarmePeer) decode(ids []uint32) string { return p.t.Decode(convert[int](ids), true) }

type pkoukkPeer struct{ t *pkoukk.Tiktoken }

// newPkoukk uses ids as ranks, which is right for a vocabulary made from a rank file.
func newPkoukk(path string) (peer, error) {
	f, err := readBPE(path)
	if err != nil {
		return nil, err
	}
	exprs := f.patterns()
	if f.Model.ByteFallback || len(exprs) != 1 {
		return nil, errors.New("takes byte-level tokenizers with one pattern")
	}
	ranks := make(map[string]int, len(f.vocab))
	for s, id := range f.vocab {
		ranks[raw(s)] = int(id)
	}
	special, all := make(map[string]int), make(map[string]any)
	for _, a := range f.Added {
		delete(ranks, a.Content)
		special[a.Content], all[a.Content] = int(a.ID), true
	}
	core, err := pkoukk.NewCoreBPE(ranks, special, exprs[0])
	if err != nil {
		return nil, err
	}
	enc := &pkoukk.Encoding{Name: filepath.Base(filepath.Dir(path)), PatStr: exprs[0], MergeableRanks: ranks, SpecialTokens: special}
	return pkoukkPeer{pkoukk.NewTiktoken(core, enc, all)}, nil
}

var everything = []string{"all"}

func (p pkoukkPeer) encode(s string) ([]uint32, error) {
	return convert[uint32](p.t.Encode(s, everything, nil)), nil
}

func (p pkoukkPeer) decode(ids []uint32) string { return p.t.Decode(convert[int](ids)) }

type tiktokenPeer struct{ c tiktoken.Codec }

// newTiktokenGo has the vocabularies of OpenAI that are compiled in, and no others.
func newTiktokenGo(path string) (peer, error) {
	name, ok := map[string]tiktoken.Encoding{
		"gpt2": tiktoken.R50kBase, "phi-4": tiktoken.Cl100kBase, "gpt-oss": tiktoken.O200kBase,
	}[filepath.Base(filepath.Dir(path))]
	if !ok {
		return nil, errors.New("has no such vocabulary")
	}
	c, err := tiktoken.Get(name)
	return tiktokenPeer{c}, err
}

func (p tiktokenPeer) encode(s string) ([]uint32, error) {
	ids, _, err := p.c.Encode(s)
	return convert[uint32](ids), err
}

func (p tiktokenPeer) decode(ids []uint32) string {
	s, _ := p.c.Decode(convert[uint](ids))
	return s
}

type ollamaPeer struct{ t ollama.BytePairEncoding }

// Token types as in GGUF files.
const (
	normal      = 1
	control     = 3
	userDefined = 4
)

func newOllama(path string) (peer, error) {
	f, err := readBPE(path)
	if err != nil {
		return nil, err
	}
	if f.Model.ByteFallback {
		return nil, errors.New("needs scores, which the file has not")
	}
	size := 0
	for _, id := range f.vocab {
		size = max(size, int(id)+1)
	}
	for _, a := range f.Added {
		size = max(size, int(a.ID)+1)
	}
	v := &ollama.Vocabulary{Values: make([]string, size), Types: make([]int32, size)}
	for s, id := range f.vocab {
		v.Values[id], v.Types[id] = s, normal
	}
	for _, a := range f.Added {
		v.Values[a.ID], v.Types[a.ID] = a.Content, userDefined
		if a.Special {
			v.Types[a.ID] = control
		}
	}
	for i := range f.Model.Merges {
		m, err := f.merge(i)
		if err != nil {
			return nil, err
		}
		v.Merges = append(v.Merges, m)
	}
	p := ollamaPeer{ollama.NewBytePairEncoding(v, f.patterns()...)}
	_, err = p.encode("a <b>") // it builds its tables when they are first used
	return p, err
}

func (p ollamaPeer) encode(s string) ([]uint32, error) {
	ids, err := p.t.Encode(s, false)
	return convert[uint32](ids), err
}

func (p ollamaPeer) decode(ids []uint32) string {
	s, _ := p.t.Decode(convert[int32](ids))
	return s
}

type goHuggingfacePeer struct{ t *hftokenizer.Tokenizer }

func newGoHuggingface(path string) (peer, error) {
	t, err := hftokenizer.NewFromFile(&api.Config{}, path)
	if err != nil {
		return nil, err
	}
	return goHuggingfacePeer{t}, t.With(api.EncodeOptions{AddSpecialTokens: false})
}

func (p goHuggingfacePeer) encode(s string) ([]uint32, error) {
	return convert[uint32](p.t.Encode(s)), nil
}

func (p goHuggingfacePeer) decode(ids []uint32) string { return p.t.Decode(convert[int](ids)) }
