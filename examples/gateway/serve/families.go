// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"strings"

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
	compiled *parsers.Registry // holds the grammar
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
	compiled, err := parsers.NewRegistry(g)
	if err != nil {
		return nil, err
	}
	f.model = f.of(g, compiled)
	return f, nil
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
	return f.of(g, parsers.Default()), nil
}

// of completes a family. Past calls are rendered the way the family writes them, so that a conversation's next prompt
// begins with the last prompt and its answer.
func (f *families) of(g *grammar.Grammar, compiled *parsers.Registry) family {
	fam := family{grammar: g, compiled: compiled, template: f.template, tokenID: f.tokenID}
	if fam.template == nil {
		var ml tchat.ChatMLOptions
		if g.Tagged != nil && g.Tagged.Body.Params != nil {
			ml.Calls = tchat.CallsXML
		}
		fam.template = tchat.ChatML(&ml)
	}
	return fam
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

// parser returns a parser for the answer to req, given the prompt the model goes on from.
func (f *family) parser(req *block.Request, prompt string) (*parsers.Parser, error) {
	opt := &parsers.Options{TokenID: f.tokenID, Start: f.start(prompt)}
	for _, t := range req.Tools() {
		opt.Tools = append(opt.Tools, parsers.Tool{Name: t.ModelName, Schema: t.Schema})
	}
	choice := req.ToolChoice()
	opt.NoCalls, opt.SingleCall = choice.Mode == block.NoTools, choice.Serial
	return f.compiled.New(f.grammar.Name, opt)
}

// start says where generation begins: some templates open the reasoning in the prompt, or close it there.
func (f *family) start(prompt string) parsers.Start {
	if f.grammar.Tagged == nil || f.grammar.Tagged.Reasoning == nil {
		return parsers.StartNone
	}
	prompt = strings.TrimRight(prompt, " \n")
	switch r := f.grammar.Tagged.Reasoning; {
	case strings.HasSuffix(prompt, r.Open.Text):
		return parsers.StartReasoning
	case strings.HasSuffix(prompt, r.Close.Text):
		return parsers.StartResponse
	}
	return parsers.StartNone
}
