// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	tchat "github.com/weft-go/weft/tokenizers/chat"
)

// families is how the gateway reads and writes in the manner of a model family. It is immutable.
type families struct {
	model    family         // what the gateway was told
	template tchat.Template // given; nil means one that goes with the family
	tokenID  func(string) (uint32, bool)
}

// A family reads output and renders prompts.
type family struct {
	grammar  *grammar.Grammar
	template tchat.Template
	tokenID  func(string) (uint32, bool)
}

// newFamilies looks the families up. A reasoning family other than the tools' lends its tags to theirs.
func newFamilies(o *Options) (*families, error) {
	f := &families{template: o.Template, tokenID: o.Tokenizer.TokenID}
	if _, ok := f.tokenID("<|im_start|>"); !ok && o.Template == nil {
		return nil, errors.New("the tokenizer has no <|im_start|>: this model needs a template of its own")
	}
	g, err := combine(o.ToolParser, o.ReasoningParser)
	if err != nil {
		return nil, err
	}
	f.model, err = f.of(g)
	return f, err
}

// get returns the family called name, or the model's own if name is "".
func (f *families) get(name string) (family, error) {
	if name == "" {
		return f.model, nil
	}
	g, err := parsers.Default().Lookup(name)
	if err != nil {
		return family{}, err
	}
	return f.of(g)
}

// of completes a family. Past calls are rendered the way the family writes them, so that a conversation's next prompt
// begins with the last prompt and its answer.
func (f *families) of(g *grammar.Grammar) (family, error) {
	fam := family{grammar: g, template: f.template, tokenID: f.tokenID}
	if fam.template == nil {
		var ml tchat.ChatMLOptions
		if g.Tagged != nil && g.Tagged.Body.Params != nil {
			ml.Calls = tchat.CallsXML
		}
		fam.template = tchat.ChatML(&ml)
	}
	_, err := parsers.For(g, nil)
	return fam, err
}

// combine returns the grammar of the family tools, with the reasoning of another one if that is not "".
func combine(tools, reasoning string) (*grammar.Grammar, error) {
	g, err := parsers.Default().Lookup(tools)
	if err != nil {
		return nil, err
	}
	if reasoning != "" {
		r, err := parsers.Default().Lookup(reasoning)
		switch {
		case err != nil:
			return nil, err
		case r == g:
		case r.Tagged == nil || g.Tagged == nil:
			return nil, fmt.Errorf("the reasoning of %s cannot be combined with the calls of %s", r.Name, g.Name)
		default:
			both, tagged := *g, *g.Tagged
			tagged.Reasoning = r.Tagged.Reasoning
			both.Name, both.Aliases, both.Tagged = g.Name+"+"+r.Name, nil, &tagged
			g = &both
		}
	}
	return g, nil
}

// parser returns a parser for the answer to req.
func (f *family) parser(req *block.Request) (*parsers.Parser, error) {
	opt := &parsers.Options{TokenID: f.tokenID}
	for _, t := range req.Tools() {
		opt.Tools = append(opt.Tools, parsers.Tool{Name: t.ModelName, Schema: t.Schema})
	}
	choice := req.ToolChoice()
	opt.NoCalls, opt.SingleCall = choice.Mode == block.NoTools, choice.Serial
	return parsers.For(f.grammar, opt)
}
