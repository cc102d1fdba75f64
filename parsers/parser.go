// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// Parser turns the output of a model into events, for one choice of one response.
//
// It is a set of small states, one function each. A state examines the window, which is the held bytes plus the new
// chunk, and either makes progress or asks for more. Only state functions change the state.
//
// The files, from the bottom up; the functions of a file use only what it and the files before it declare:
//
//	errors.go options.go policy.go      what a caller may specify
//	stream.go models.go                 parsers of the user's own; model ids
//	markers.go machine.go               marker sets; what the machine consists of, and what a layout is
//	window.go                           the window: what is held, what was examined, tokens, how events are emitted
//	run.go                              a run of text or reasoning
//	call.go                             one tool call: start, arguments, end, abort
//	values.go args.go                   arguments: single raw values, JSON
//	guided.go                           output constrained to JSON by the engine
//	text.go plain.go                    text up to the next marker; the short way for chunks that only continue it
//	tagged.go                           layout grammar.Tagged: its state, and how states of it are entered
//	name.go jsoncall.go params.go       names; arguments as grammar.Body selects
//	peek.go body.go bare.go             the same; calls without a tag, and in a Python list of dicts
//	blocks.go                           blocks of calls, and the layout itself
//	channels.go                         layout grammar.Channels
//	elements.go                         layout grammar.Elements
//	parser.go registry.go               Parser; families by name
//
// A Parser serves one stream at a time and is not safe for concurrent use. It keeps its memory over Reset.
type Parser struct {
	machine
	stream Stream // a parser of the user; the machine then only determines how the turn ends
	ended  bool   // Finish was called
}

// layouts are the compilers of the layouts. Each returns nil for a grammar of another layout.
var layouts = [...]func(*grammar.Grammar) *compiled{compileTagged, compileChannels, compileElements}

func compile(g *grammar.Grammar) (*compiled, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	for _, f := range layouts {
		if c := f(g); c != nil {
			c.markers = g.Markers()
			return c, nil
		}
	}
	panic("parsers: a valid grammar has a layout")
}

// Append parses the next chunk of output and appends its events to dst. A chunk may be cut anywhere, also inside a
// marker or a UTF-8 sequence. The chunk is not retained. The events' Data is valid until the next call on p.
//
// Malformed output is never an error. An error is a *LimitError, or a use of p after Finish; events appended before
// it are valid, and every later call returns the same error until Reset. Pass dst[:0], or clone the events before the
// next call: events that dst holds from an earlier call lose their Data.
//
// Cost: each byte is examined at most twice on average; plain text allocates nothing beyond what dst grows.
func (p *Parser) Append(dst []event.Event, chunk []byte) ([]event.Event, error) {
	if r := p.plain; r != nil {
		o := r.oddities(chunk)
		if o == 0 && !r.args {
			return p.pass(dst, chunk), nil
		}
		if out, ok := p.short(dst, chunk, o); ok {
			return out, nil
		}
	}
	return p.parse(dst, chunk, nil)
}

// AppendTokens is Append for output whose token ids are known. A marker that the vocabulary holds as one token, as
// reported by Options.TokenID, then counts only as that token: the same characters spelled by other tokens are data.
// The Tokens of an event are those that ended in it; tokens of a marker count in the next event. So do tokens passed
// with an empty chunk, because the detokenizer still holds their bytes; they are never recognized as markers.
//
// From the first call until Reset, chunks passed to Append contain no marker that is a token.
func (p *Parser) AppendTokens(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error) {
	p.tokens = true
	return p.parse(dst, chunk, tokens)
}

// parse runs the states over a chunk.
func (p *Parser) parse(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error) {
	if p.err == nil && p.ended {
		p.err = errFinished
	}
	if p.err != nil {
		return dst, p.err
	}
	if p.stream != nil {
		return p.appendStream(dst, chunk, tokens)
	}
	if len(chunk) == 0 { // tokens without bytes count toward the next event
		p.note(tokens, p.off(len(p.win)), 0)
		return dst, nil
	}
	p.evs = dst
	p.open(chunk, tokens)
	p.run()
	dst, p.evs = p.evs, nil
	if p.rawOn { // before the window moves, now or in the next call
		p.keepRaw(p.start)
	}
	p.keep()
	p.allowPlain()
	return dst, p.err
}

// Finish ends the stream: it appends the events of what was held back and then an event.Finish. A call that the end of
// the stream cut is aborted. Calling Finish again returns dst unchanged.
//
// why is the engine's finish reason. event.Stop means that the engine stopped at a stop token and did not pass it on,
// as engines do by default. A message whose terminator is that token (gpt-oss: <|call|>) is then treated as terminated.
// event.ToolCalls has the same effect. event.Length means that the output was cut: an argument that was not closed is then
// incomplete, even if what there is of it ends in the closing tag of the call. event.None means that the reason is unknown.
//
// The Why of the event.Finish is event.Length if why is None and the end of the stream cut a call, or a list of calls that
// was held and became text: a guided document, or a list of Python calls whose first name is a tool. It is event.ToolCalls if
// why is Stop or None and at least one call outside reasoning is complete, event.Stop if why is None and no such call is
// complete, and why otherwise. Its Tokens were counted by no other event. After an error there is no event.Finish.
func (p *Parser) Finish(dst []event.Event, why event.Why) ([]event.Event, error) {
	if p.err != nil || p.ended {
		return dst, p.err
	}
	p.ended = true
	if p.stream != nil {
		return p.finishStream(dst, why)
	}
	p.evs, p.plain = dst, nil
	p.open(nil, nil)
	p.final, p.terse, p.cut = true, why == event.Stop || why == event.ToolCalls, why == event.Length
	p.run()
	p.flushEnd()
	if p.err == nil {
		p.endTurn(why)
	}
	dst, p.evs = p.evs, nil
	return dst, p.err
}

// endTurn appends the event.Finish of a stream that the engine ended for why.
func (p *Parser) endTurn(why event.Why) {
	switch {
	case why == event.None && p.cutOff:
		why = event.Length
	case (why == event.None || why == event.Stop) && p.complete > 0:
		why = event.ToolCalls
	case why == event.None:
		why = event.Stop
	}
	p.part = max(p.part, 0)
	p.emit(event.Finish, nil, len(p.win), len(p.win))
	p.evs[len(p.evs)-1].Why = why
}

// Reset makes p ready for the next response with the same options, also after an error.
func (p *Parser) Reset() {
	p.ended, p.err = false, nil
	p.output = output{out: p.out[:0], part: -1}
	if p.stream != nil {
		p.base = 0
		p.stream.Reset()
		return
	}
	p.state, p.native, p.plain, p.terse, p.cut = stText, 0, nil, false, false
	p.window = window{buf: p.buf[:0], openAt: -1}
	p.tokenQueue = tokenQueue{ids: p.ids, isID: p.isID, tokEnds: p.tokEnds[:0], tokMarks: p.tokMarks[:0]}
	p.setTextMarkers(p.plainMarkers)
	p.textRun = textRun{
		textMarkers: p.textMarkers, reasonMarkers: p.reasonMarkers, plainMarkers: p.plainMarkers, bracedMarkers: p.bracedMarkers,
		want: p.opt.Output != Native,
	}
	p.source = source{raw: p.raw[:0]}
	p.call = callState{name: p.call.name[:0], id: p.call.id[:0], late: p.call.late[:0]}
	p.lex.Reset()
	p.param.reset()
	p.layout.reset()
	p.layout.begin(p.opt.Start)
}

// run runs the states until they need more input.
func (p *Parser) run() {
	for p.err == nil && p.advance() {
	}
}

// advance runs the current state once and reports whether a state may run again.
func (p *Parser) advance() bool {
	switch {
	case p.state >= stConfirm:
		return p.layout.advance()
	case p.state == stText:
		return p.text()
	case p.state == stValue:
		return p.value()
	case p.state == stGuided:
		return p.guided()
	}
	return p.rawJSON()
}

// flushEnd ends the open run and call at the end of the stream. The states have already flushed text.
func (p *Parser) flushEnd() {
	if p.err == nil && p.call.open && !p.layout.cutCall() {
		p.abort(event.Truncated, len(p.win))
	}
	p.start = len(p.win)
	if p.restore {
		p.restoreText(p.start)
	}
	if p.prefix != "" && p.err == nil {
		p.block(event.Text)
		p.emit(event.Text, p.made([]byte(p.prefix)), p.start, p.start)
	}
}

// NewParser returns a parser of grammar g, which must be valid and must not be modified afterwards. Nil options mean
// the defaults. NewParser compiles g: to make many parsers of one grammar, use a Registry.
func NewParser(g *grammar.Grammar, opt *Options) (*Parser, error) {
	c, err := compile(g)
	if err != nil {
		return nil, err
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	return newParser(c, opt), nil
}

func newParser(c *compiled, opt *Options) *Parser {
	p := new(Parser)
	p.c = c
	if opt != nil {
		p.opt = *opt
	}
	p.rules = p.opt.Policy.rules(c.g.Name)
	if p.opt.Start == StartUnspecified && p.opt.Prompt != "" {
		p.opt.Start = c.startAfter(strings.TrimRight(p.opt.Prompt, " \n\t\r"))
	}
	p.opt.Prompt = "" // it may be long
	p.lim = p.opt.Limits.withDefaults()
	p.opt.Tools = append([]Tool(nil), p.opt.Tools...)
	if f := p.opt.TokenID; f != nil {
		p.ids, p.isID = make(map[string]uint32, len(c.markers)), make(map[uint32]bool, len(c.markers))
		for _, m := range c.markers {
			if id, ok := f(m.Text); ok {
				p.ids[m.Text], p.isID[id] = id, true
			}
		}
	}
	p.plainMarkers, p.reasonMarkers, p.bracedMarkers = c.sets(&p.opt, &p.rules)
	if p.rules.bareAnywhere && p.bracedMarkers != nil {
		p.plainMarkers = p.bracedMarkers
	}
	p.textMarkers = p.plainMarkers
	p.layout = c.newLayout(&p.machine)
	p.setPlain()
	p.Reset()
	return p
}

// Grammar returns the grammar of p, or nil if the parser is the user's own. The caller must not modify it.
func (p *Parser) Grammar() *grammar.Grammar {
	if p.c == nil {
		return nil
	}
	return p.c.g
}

// wrap returns a Parser around a stream of the user's own, whose events are of the given choice.
func wrap(s Stream, choice int32) *Parser {
	p := &Parser{stream: s}
	p.opt.Choice = choice
	p.Reset()
	return p
}

// appendStream passes a chunk to a stream of the user's own.
func (p *Parser) appendStream(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error) {
	n := len(dst)
	dst, p.err = p.stream.Append(dst, chunk, tokens)
	p.follow(dst[n:])
	p.base += int64(len(chunk))
	return dst, p.err
}

func (p *Parser) finishStream(dst []event.Event, why event.Why) ([]event.Event, error) {
	n := len(dst)
	dst, p.err = p.stream.Finish(dst, why)
	p.follow(dst[n:])
	if p.err == nil {
		p.evs = dst
		p.endTurn(why)
		dst, p.evs = p.evs, nil
	}
	return dst, p.err
}

// follow records the properties of events on which the end of the turn depends.
func (p *Parser) follow(events []event.Event) {
	for i := range events {
		e := &events[i]
		if p.part = max(p.part, e.Part); e.Kind == event.ToolEnd && e.Flags&(event.Complete|event.InReasoning) == event.Complete {
			p.complete++
		}
	}
}
