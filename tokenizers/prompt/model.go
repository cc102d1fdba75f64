// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/template"
)

// Model renders requests into prompts and decodes the model's output. Create one with [Load] or [New]. It is immutable,
// except for its prefix cache, and safe for concurrent use by multiple goroutines.
type Model struct {
	opt        Options
	template   template.Template
	given      template.Template // template, without the calls that setCalls adds
	written    bool              // setCalls added them
	printer    *printer          // identifies the template, which may not be comparable
	chatML     bool              // the template is the built-in ChatML, with calls as the family's parser reads them
	verbatim   bool              // the template prints arguments unchanged; the model writes them as most clients' JSON libraries do
	caps       template.Capabilities
	reasons    reasoningVars     // of caps
	separators map[string]string // of the text parts of a message, by role
	source     string

	grammar *grammar.Grammar // nil if the family is unknown or the caller registered its parser
	past    replay.Model     // rules that select past reasoning
	policy  parsers.Policy   // of decoders whose caller specifies none
	tags    *chat.Tags       // of the family's reasoning; nil if it has no tags

	tok    *tokenizers.Tokenizer // may be nil
	blocks bool                  // the text of a token does not depend on the tokens before it
	cache  *cache.Cache
	ends   []uint32 // eos_token_id of config.json
	stops  []uint32 // ids that end a response, sorted
	window int
	empty  bool // Options.KeepEmpty

	shapes *shapes // of the template and the family
}

// shapes holds what is found at the first constraint.
type shapes struct {
	once  sync.Once
	shape *callShape
}

// Options configures [Load] and [New]. The zero value is the default.
type Options struct {
	// Family is the name of the model's format for reasoning and calls, as passed to [parsers.Registry.Lookup]. If
	// empty, Load infers it; New leaves it unknown, and the model then renders prompts but NewDecoder returns an error.
	// Load returns an error if the template contradicts the family.
	Family string
	// Name is the model's name, such as "Qwen/Qwen3-8B". Load uses it to infer the family.
	Name string
	// Parsers is the registry of families; nil means [parsers.Default].
	Parsers *parsers.Registry
	// Tokenizer encodes prompts. Load ignores it and reads the directory's own. In New it may be nil; prompts then have
	// no ids.
	Tokenizer *tokenizers.Tokenizer
	// Window is the maximum number of tokens of prompt and response together. 0 means the window that the directory
	// specifies, or no limit. Set it to the engine's if that is smaller (vllm serve --max-model-len): requests ask for
	// the rest of the window.
	Window int
	// Replay is the operator's rule for past reasoning. With the zero Rule, the template and the family determine it. The
	// rule widest keeps what the template can print.
	Replay replay.Rule
	// KeepEmpty keeps the empty reasoning block, with which a prompt ends if reasoning is off, in the following prompts
	// of a chain of calls if the template can print it. Each prompt then begins with the previous one, but it differs
	// from the template's own output: Qwen3's omits the empty tags.
	KeepEmpty bool
}

// New returns a model with the given template and options, for tests and for programs that load these parts themselves.
// It probes the template, which takes some milliseconds. A template that calls a method which Jinja's sandbox hides, such
// as append, is an error: only some conversations reach the call. Nil options are the defaults.
//
// A nil template selects ChatML; the tokenizer, if any, must then have the token <|im_start|>. ChatML asks for calls as
// JSON objects (hermes) or in XML (qwen3_coder), whichever the parser of the family reads. If it reads neither, prompts
// contain no tools, which is a loss of each request with tools. ChatML asks for JSON objects if the family is unknown,
// has no calls, or has a parser of the caller's own.
func New(t template.Template, opt *Options) (*Model, error) {
	if t == nil && opt != nil && opt.Tokenizer != nil {
		if _, ok := opt.Tokenizer.TokenID("<|im_start|>"); !ok {
			return nil, errors.New("prompt: the tokenizer has no <|im_start|>: this model needs a template of its own")
		}
	}
	return newModel(t, opt)
}

// newModel is like New, but ChatML may be plain text to the tokenizer.
func newModel(t template.Template, opt *Options) (*Model, error) {
	m := &Model{template: t, chatML: t == nil}
	if opt != nil {
		m.opt = *opt
	}
	m.empty, m.window = m.opt.KeepEmpty, m.opt.Window
	if m.opt.Window < 0 {
		return nil, errors.New("prompt: negative Window")
	}
	if m.opt.Parsers == nil {
		m.opt.Parsers = parsers.Default()
	}
	if tok := m.opt.Tokenizer; tok != nil {
		m.tok = tok.WithLimits(tokenizers.Truncation{}, tokenizers.Padding{}) // prompts are never truncated
		m.blocks = spaced(m.tok)
		var err error
		if m.cache, err = cache.New(m.tok, nil); err != nil {
			return nil, fmt.Errorf("prompt: %w", err)
		}
	}
	if !m.chatML {
		m.given = t
		if err := m.probe(t); err != nil {
			return nil, fmt.Errorf("prompt: %w", err)
		}
	}
	if err := m.setFamily(m.opt.Family); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	return m, nil
}

// spaced reports whether a tokenizer decodes a word with its space also at the beginning of a text. Decoders that strip
// spaces, or add them between words, do not.
func spaced(tok *tokenizers.Tokenizer) bool {
	ids := tok.AppendEncode(nil, "a a")
	return len(ids) > 0 && string(tok.AppendDecode(nil, ids[len(ids)-1:], false)) == " a"
}

// WithFamily returns a copy of the model with another family. The two share all parts, including the tokenizer and the
// cache. The template is not probed again, unless it is the built-in ChatML or prints no past calls.
func (m *Model) WithFamily(name string) (*Model, error) {
	out := *m
	if err := out.setFamily(name); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	return &out, nil
}

type printer struct{ _ byte } // of a size, so that each has an address of its own

// probe sets the template and its capabilities.
func (m *Model) probe(t template.Template) (err error) {
	m.template, m.printer, m.caps = t, new(printer), template.Probe(t)
	if fault := m.caps.Text("fault"); fault != "" {
		return errors.New("chat template: " + fault + ": transformers refuses it too")
	}
	m.reasons, m.separators = reasoningVarsOf(&m.caps), separatorsOf(&m.caps)
	m.past.Template, err = replayOf(&m.caps)
	return err
}

// setFamily looks up the family and sets the fields that depend on it.
func (m *Model) setFamily(name string) error {
	m.opt.Family, m.grammar, m.tags = name, nil, nil
	m.past.Configured, m.past.Family = m.opt.Replay, replay.Rule{}
	if name != "" {
		g, err := m.opt.Parsers.Lookup(name)
		if err != nil {
			return err
		}
		m.grammar = g
	}
	if m.grammar != nil {
		m.past.Family, m.tags = m.grammar.Replay, tagsOf(m.grammar)
	}
	m.past.Untagged = m.tags == nil
	if !m.chatML {
		if err := m.setCalls(); err != nil {
			return err
		}
	}
	m.shapes = new(shapes)
	m.policy = parsers.Policy{}
	if g := m.grammar; g != nil && g.Tagged != nil && g.Tagged.Reasoning != nil && g.Tagged.Reasoning.Tail != "" && m.caps.Has("closes_directly") {
		var err error
		if m.policy, err = parsers.ParsePolicy("keep_tail"); err != nil {
			return err
		}
	}
	m.setStops()
	if m.chatML {
		return m.setChatML()
	}
	return nil
}

// setChatML sets the template to ChatML with the first form of calls that the family's parser reads, or to ChatML
// without calls if there is none.
func (m *Model) setChatML() error {
	forms := []string{"json", "xml", "none"}
	if g := m.grammar; g != nil && g.Tagged != nil && g.Tagged.Body.Params != nil {
		forms = []string{"xml", "json", "none"} // it may read both, but writes parameters
	}
	for _, calls := range forms {
		t, err := template.Lookup("chatml", &template.Options{Variables: map[string]any{"calls": calls}})
		if err == nil {
			err = m.probe(t)
		}
		if err != nil {
			return err
		}
		if !writesCalls(m.grammar) || m.newSample().read(m.opt.Parsers, m.opt.Family) > 0 {
			break
		}
	}
	return nil
}

// untold reports whether the prompts of the built-in ChatML contain no tools because the family's parser would not read
// calls.
func (m *Model) untold() bool { return m.chatML && !m.caps.Has("tools") }

// terminators are tokens that end a turn if the vocabulary has them as special tokens, even if the model's files do not
// list them.
var terminators = []string{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end_of_msg|>", "<|return|>", "<|call|>"}

// setStops collects the tokens that end a response: those in the model's files, the family's, and terminators.
func (m *Model) setStops() {
	if m.tok == nil {
		return
	}
	names := slices.Clone(terminators)
	if m.grammar != nil && m.grammar.Tagged != nil {
		for _, end := range m.grammar.Tagged.Ends {
			names = append(names, end.Text)
		}
	}
	m.stops = slices.Concat(m.ends, m.tok.EOS())
	for _, name := range names {
		if id, ok := m.tok.TokenID(name); ok && m.tok.IsSpecial(id) {
			m.stops = append(m.stops, id)
		}
	}
	slices.Sort(m.stops)
	m.stops = slices.Compact(m.stops)
}

// Tokenizer returns the tokenizer, or nil if the model has none. It neither truncates nor pads.
func (m *Model) Tokenizer() *tokenizers.Tokenizer { return m.tok }

// Cache returns the prefix cache of token ids, or nil if the model has no tokenizer.
func (m *Model) Cache() *cache.Cache { return m.cache }

// Family returns the name of the family, or "" if it is unknown. An alias of a family with a grammar is replaced by the
// canonical name.
func (m *Model) Family() string {
	if m.grammar != nil {
		return m.grammar.Name
	}
	return m.opt.Family
}

// Source describes the source of the template, for logs.
func (m *Model) Source() string {
	switch {
	case m.untold():
		return fmt.Sprintf("%s without tools: the parser %s reads no call in it", cmp.Or(m.source, "ChatML"), m.Family())
	case m.chatML:
		return cmp.Or(m.source, "ChatML")
	}
	return cmp.Or(m.source, "the caller's own template")
}

// Window returns the maximum number of tokens of prompt and response together, or 0 if it is unknown.
func (m *Model) Window() int { return m.window }

// StopTokens returns the ids that end a response, sorted: those in the model's files and the known end-of-turn tokens
// of its vocabulary. The caller must not modify the slice.
func (m *Model) StopTokens() []uint32 { return m.stops }

// Capabilities returns the capabilities of the template, as found by probing.
func (m *Model) Capabilities() template.Capabilities { return m.caps }

// Preamble returns the order of parts in prompts, which package preamble needs to compare requests.
func (m *Model) Preamble() preamble.Prompt {
	p := preamble.Prompt{CallIDs: m.caps.Has("call_ids")}
	if m.caps.Has("tools") && m.caps.Has("system") && !m.caps.Has("tools_first") {
		p.SystemFirst = true
	}
	return p
}
