// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"strings"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
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
	grammar    *grammar.Grammar
	template   tchat.Template
	lateSystem chat.SystemMode
	tokenID    func(string) (uint32, bool)
}

// newFamilies looks the families up. A reasoning family other than the tools' lends its tags to theirs.
func newFamilies(o *Options) (*families, error) {
	f := &families{template: o.Template, tokenID: o.Tokenizer.TokenID}
	if _, ok := f.tokenID("<|im_start|>"); !ok && o.Template == nil {
		return nil, errors.New("the tokenizer has no <|im_start|>: this model needs a template of its own")
	}
	name := o.ToolParser
	if o.ReasoningParser != "" {
		name += "+" + o.ReasoningParser
	}
	var err error
	f.model, err = f.of(name)
	return f, err
}

// get returns the family called name, or the model's own if name is "".
func (f *families) get(name string) (family, error) {
	if name == "" {
		return f.model, nil
	}
	return f.of(name)
}

// of returns the family called name. Past calls are rendered the way the family writes them, so that a conversation's next prompt
// begins with the last prompt and its answer.
func (f *families) of(name string) (family, error) {
	g, err := parsers.Default().Lookup(name)
	if err != nil {
		return family{}, err
	}
	fam := family{grammar: g, template: f.template, tokenID: f.tokenID}
	if fam.template == nil {
		var ml tchat.ChatMLOptions
		if t := g.Tagged; t != nil && t.Body.Params != nil && t.Body.Params.Open == "<parameter=" {
			ml.Calls = tchat.CallsXML
		}
		fam.template = tchat.ChatML(&ml)
	}
	fam.lateSystem = lateSystem(fam.template)
	return fam, nil
}

// lateSystem finds out what a template does with system text behind the first other turn, which harnesses send: Qwen3.5's raises
// an error. What it does not print as it stands goes into a user turn.
func lateSystem(t tchat.Template) chat.SystemMode {
	const late = "weft-late-system-text"
	p, err := t.Render(tchat.Request{AddGenerationPrompt: true, Messages: []byte(
		`[{"role":"system","content":"a"},{"role":"user","content":"b"},{"role":"system","content":"` + late + `"},{"role":"assistant","content":"c"},{"role":"user","content":"d"}]`)})
	if err != nil || !strings.Contains(p.Text, late) {
		return chat.SystemAsUser
	}
	return chat.SystemKeep
}

// parser returns a parser for the answer to req, given the prompt the model goes on from.
func (f *family) parser(req *block.Request, prompt string) (*parsers.Parser, error) {
	opt := &parsers.Options{TokenID: f.tokenID, Start: parsers.StartOf(f.grammar, prompt)}
	choice := req.ToolChoice()
	for _, t := range req.Tools() {
		opt.Tools = append(opt.Tools, parsers.Tool{Name: t.ModelName, Schema: t.Schema})
		if choice.Mode == block.Named && choice.Name == t.Name {
			opt.Tool = t.ModelName
		}
	}
	opt.NoCalls, opt.SingleCall = choice.Mode == block.NoTools, choice.Serial
	return parsers.New(f.grammar.Name, opt)
}
