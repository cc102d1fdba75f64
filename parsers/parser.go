// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/protocols/event"
)

// Parser turns the output of a model into events, for one choice of one response.
//
// The machine is a set of small states, one function each. A state looks at the window, which is what was held back
// before plus the new chunk, and either makes progress or asks for more. Files:
//
//	options.go policy.go            what a caller may ask for
//	compile.go                      the marker sets of a grammar
//	window.go plain.go              the window: what is held, what was examined, how events are emitted; the short way
//	text.go                         visible text and reasoning, in every layout
//	call.go repair.go               the life of one tool call: start, arguments, end, abort
//	tagged.go name.go               layout grammar.Tagged: blocks of calls, the name of one
//	channels.go                     layout grammar.Channels
//	elements.go                     layout grammar.Elements
//	jsoncall.go params.go body.go   what grammar.Body selects to read the arguments
//	bare.go peek.go literal.go      calls without a tag, and calls in a Python list of dicts
//	guided.go                       output constrained to JSON by the engine
//
// Only state functions change the state. start only moves forward: what it passes is accounted for.
//
// A Parser serves one stream at a time and is not safe for concurrent use. It keeps its memory over Reset.
type Parser struct {
	c      *compiled
	stream Stream // the user's own; then nothing below is in use but err and ended
	opt    Options
	lim    Limits

	// The window. Invariant between calls: 0 ≤ start ≤ anchor, pos ≤ len(win).
	win     []byte
	start   int // first byte that is not accounted for
	pos     int // first byte that was not examined
	anchor  int // where an expected marker or a confirmation began
	mark    int // where the last marker found begins
	from    int // where the current name, tag, header section or blank run begins or was examined to
	openEnd int // where it ends
	openAt  int // where the markup of a tag begins that may still be prose; -1 for none
	// Around what may be the closing marker of a value, and where the markup behind it begins.
	closeAt, closeEnd, nextAt int
	own                       bool  // win is buf, not the caller's chunk
	base                      int64 // offset of win[0] in the stream
	buf                       []byte
	out                       []byte // text made up by the parser in this call, such as escaped arguments
	evs                       []event.Event
	final                     bool // nothing follows the window
	ended                     bool // Close was called
	terse                     bool // the engine swallowed the last terminator
	err                       error

	tokens   bool              // FeedTokens is in use: markers that are tokens count only as such
	ids      map[string]uint32 // of markers that are tokens
	isID     map[uint32]bool   // the same ids
	tokEnds  []int64           // ends of tokens, from tokNext on of those that no event has counted yet
	tokNext  int
	tokDue   int32     // tokens before start that no event has counted yet
	tokMarks []tokMark // tokens that are markers, not yet behind start

	state state
	node  scan.Node
	step  uint8 // of a confirmation
	lit   int   // bytes of a literal that were matched
	shut  bool  // the tag being read is a closing one

	// Runs of text and reasoning.
	reasoning bool   // reasoning is open; a call inside it returns to it
	runOpen   bool   // the current run has emitted something
	trim      string // structural white space that may still follow
	padSeen   int    // of Policy.Before DropBlanks: up to where the run was looked at
	padEnd    int    // and behind its last byte that is not blank
	label     string // of reasoning, that may still follow
	prefix    string // of the text: an opening tag that stands in the prompt
	last      byte   // the last byte emitted in this run
	suspected bool   // the opening tag that no call followed is a token
	quoting   bool   // an opening tag was left in this run as text
	thought   bool   // there was reasoning
	part      int32
	partKind  event.Kind
	joinable  bool // the last block is reasoning that was closed, with nothing behind it
	lastCall  bool // the last block was a call
	echoable  bool // an echoed reasoning opener may still come

	call callState

	// The source of the open call, or of an aborted one, while it may become text.
	rawOn, restore bool
	raw            []byte
	rawAt          int64 // stream offset behind raw

	spare []byte   // scratch
	in    struct { // nesting of calls
		wrapper bool // inside the wrapper of a tagged block
		list    bool // inside a list of calls
		block   bool // inside a block of calls in a message
		elem    elem // current element
	}
	calls    int32 // ordinals given out
	complete int32 // complete calls

	bare    bool // calls may come without a tag, as JSON objects
	waiting bool // for more, to tell whether one does
	ahead   peekState
	dead    int64 // stream offset before which no list of calls begins
	lists   codec.ListScanner
	dec     grammar.Decoder
	passer  grammar.Passing // dec, if it is one

	lex    jsontext.Lexer
	json   jsonCall
	param  paramState
	header headerState
	want   bool  // a guided document is still expected
	native int64 // stream offset before which none begins

	textMarkers, reasonMarkers *markerSet

	plain *plainRun // the run that is open, if plain chunks may follow
	runs  *plainRuns
}

type tokMark struct {
	off, end int64
	id       uint32
}

// state names what the machine is doing; the functions are in (*Parser).run.
type state uint8

const (
	// all layouts
	stText     state = iota // visible text or reasoning
	stGuided                // a guided document, held
	stNamed                 // a guided document, streamed
	stSkip                  // markup that cannot be read, until the next marker
	stOpened                // behind the opener of a tagged block: is it one?
	stSuspect               // it is not; is it prose or a broken call?
	stClosing               // behind a call inside a tagged block
	stName                  // the name of a tagged call
	stJSON                  // the body of a tagged call: one JSON object
	stParams                // between parameters
	stKey                   // the key of a parameter
	stValue                 // the value of a parameter
	stConfirm               // behind the closer of a value: is it one?
	stFirst                 // the implied first header of channels
	stHeader                // a header of channels
	stArgs                  // the body of a call: raw JSON
	stRaw                   // the body of a call: free text
	stEnd                   // behind the arguments, before the end marker
	stOpen                  // the header of an element
	stClose                 // the closing tag of an element
	stCall                  // inside a call element, between arguments
	stBody                  // behind the name of a tagged call, before its arguments
	stCodec                 // in arguments that a codec reads
	stList                  // between the call objects of a list
	stAttr                  // between the key of a parameter and its value
	stBareList              // in what may be a list of calls without a tag
	stMessage               // at the beginning of a message to a tool
	stStream                // the parser is the user's own
	stRepair                // behind arguments that lack closing brackets
)

// Feed parses the next chunk of output and appends the events it brings to dst. A chunk may be cut anywhere, also
// inside a marker or a UTF-8 sequence. The chunk is not retained. The events' Data is valid until the next call on p.
//
// Malformed output is never an error. An error is a *LimitError, or a use of p after Close; events appended before
// it are valid, and every later call returns the same error until Reset. Pass dst[:0], or clone the events before the
// next call: what dst holds from an earlier call loses its Data.
//
// Cost: each byte is examined at most twice on average; plain text allocates nothing beyond what dst grows.
func (p *Parser) Feed(dst []event.Event, chunk []byte) ([]event.Event, error) {
	if r := p.plain; r != nil {
		o := r.oddities(chunk)
		if o == 0 && !r.args {
			return p.pass(dst, chunk), nil
		}
		if out, ok := p.short(dst, chunk, o); ok {
			return out, nil
		}
	}
	return p.feed(dst, chunk, nil)
}

// Token is one token of model output: its id and where its bytes end in the chunk it came with.
type Token struct {
	ID  uint32
	End int // exclusive, in bytes of the chunk; never decreasing
}

// FeedTokens is Feed for output whose token ids are known. A marker that the vocabulary holds as one token, as
// Options.TokenID says, then counts only where that very token stands: the same characters spelled by other tokens
// are data. Events count the tokens that ended in them; tokens of a marker count in the event behind it, and so do tokens
// that come with an empty chunk because the detokenizer still holds their bytes; such a token is not known as a marker
// when its bytes come.
//
// From the first call on until Reset the stream is one with ids: a chunk given to Feed then holds no marker that is a token.
func (p *Parser) FeedTokens(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error) {
	p.tokens = true
	return p.feed(dst, chunk, tokens)
}

func (p *Parser) feed(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error) {
	if p.err == nil && p.ended {
		p.err = errClosed
	}
	if p.err != nil {
		return dst, p.err
	}
	if p.stream != nil {
		return p.feedStream(dst, chunk, tokens)
	}
	if len(chunk) == 0 { // tokens without bytes are counted with what follows
		p.note(tokens, p.off(len(p.win)), 0)
		return dst, nil
	}
	p.evs = dst
	p.open(chunk, tokens)
	p.run()
	dst, p.evs = p.evs, nil
	p.keep()
	p.settlePlain()
	return dst, p.err
}

// Close ends the stream: it flushes what was held back and appends the last events to dst. A call that the end of the
// stream cut is aborted. Calling Close again returns dst unchanged.
func (p *Parser) Close(dst []event.Event) ([]event.Event, error) { return p.close(dst, false) }

// CloseStopped is Close for a stream that the engine ended at a stop token without passing the token on, which is what
// engines do by default. A message whose terminator is that token (gpt-oss: <|call|>) then counts as terminated.
func (p *Parser) CloseStopped(dst []event.Event) ([]event.Event, error) { return p.close(dst, true) }

func (p *Parser) close(dst []event.Event, stopped bool) ([]event.Event, error) {
	if p.err != nil || p.ended {
		return dst, p.err
	}
	if p.stream != nil {
		return p.closeStream(dst)
	}
	p.evs, p.plain = dst, nil
	p.open(nil, nil)
	p.final, p.ended, p.terse = true, true, stopped
	p.run()
	p.finish()
	dst, p.evs = p.evs, nil
	return dst, p.err
}

// Reset makes p ready for the next response with the same options, also after an error.
func (p *Parser) Reset() {
	if p.stream != nil {
		p.stream.Reset()
		*p = Parser{stream: p.stream, state: stStream}
		return
	}
	*p = Parser{
		c: p.c, opt: p.opt, lim: p.lim, ids: p.ids, isID: p.isID,
		buf: p.buf[:0], out: p.out[:0], tokEnds: p.tokEnds[:0], tokMarks: p.tokMarks[:0],
		call:   callState{name: p.call.name[:0], id: p.call.id[:0]},
		spare:  p.spare[:0],
		raw:    p.raw[:0],
		dec:    p.dec,
		passer: p.passer,
		runs:   p.runs,

		textMarkers: p.textMarkers, reasonMarkers: p.reasonMarkers,
		json:   jsonCall{args: p.json.args[:0]},
		param:  p.param,
		header: headerState{channel: p.header.channel[:0], recipient: p.header.recipient[:0], ctype: p.header.ctype[:0]},
		part:   -1,
		openAt: -1,
	}
	p.param.reset()
	p.begin()
}

// begin enters the state in which generation starts.
func (p *Parser) begin() {
	p.want = p.opt.Output != Native
	g := p.c.g
	p.bare = p.c.layout == tagged && p.c.tag.Bare && p.c.tag.Body.Call != nil && p.calling()
	start := p.opt.Start
	if start == StartDefault {
		start = StartNone
		if t := g.Tagged; t != nil && t.Reasoning != nil && (t.Reasoning.Prompted || p.opt.Policy.ForceReasoning) {
			start = StartReasoning
		}
	}
	switch start {
	case StartReasoning:
		p.reasoning = p.c.hasReasoning && (p.c.layout != tagged || p.opt.Channels != OnlyTools)
		p.echoable, p.thought = true, p.reasoning
		if p.c.layout == tagged && p.reasoning {
			r := g.Tagged.Reasoning
			p.trim, p.label = r.Lead, r.Label
			if r.Inline {
				p.reasoning = false
				p.prefix = r.Open.Text
				p.label = r.Open.Text // an echo
			}
		}
		if g.Elements != nil && p.reasoning {
			p.in.elem = elemReasoning
		}
		if g.Channels != nil && p.reasoning {
			p.header.body = true
		}
	case StartResponse:
		if g.Elements != nil {
			p.in.elem = elemText
		}
		if g.Channels != nil {
			p.header.body = true
		}
	default:
		if g.Channels != nil {
			p.state = stFirst
		}
	}
}

// calling reports whether calls are parsed at all.
func (p *Parser) calling() bool { return p.opt.Channels != OnlyReasoning && !p.opt.NoCalls }

// run drives the state functions until they ask for more.
func (p *Parser) run() {
	for p.err == nil && p.advance() {
	}
}

// advance runs the current state once and reports whether it may run again.
func (p *Parser) advance() bool {
	switch p.state {
	case stText:
		return p.text()
	case stGuided:
		return p.guided()
	case stNamed, stArgs:
		return p.rawJSON()
	case stSkip:
		return p.skip()
	case stOpened:
		return p.opened()
	case stSuspect:
		return p.suspect()
	case stClosing:
		return p.closing()
	case stName:
		return p.callName()
	case stJSON:
		return p.jsonBody()
	case stParams:
		return p.params()
	case stKey:
		return p.paramKey()
	case stValue:
		return p.value()
	case stConfirm:
		if p.c.layout == elements {
			return p.confirmElement()
		}
		return p.confirmParam()
	case stFirst:
		return p.firstHeader()
	case stHeader:
		return p.headerText()
	case stRaw:
		return p.rawText()
	case stEnd:
		return p.endOfMessage()
	case stOpen:
		return p.elementOpen()
	case stClose:
		return p.elementClose()
	case stCall:
		return p.elementCall()
	case stBody:
		return p.body()
	case stCodec:
		return p.codec()
	case stList:
		return p.list()
	case stAttr:
		return p.attribute()
	case stBareList:
		return p.bareList()
	case stMessage:
		return p.messageBody()
	case stRepair:
		return p.repair()
	}
	return false
}

// finish settles what is open at the end of the stream. Text has been flushed by the states themselves.
func (p *Parser) finish() {
	if p.err == nil && p.call.open && !p.endTruncated() {
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

// For returns a parser of grammar g, which must be valid and must not change any more. Nil options are defaults. It
// compiles g: to make many parsers of one grammar, keep it in a Registry.
func For(g *grammar.Grammar, opt *Options) (*Parser, error) {
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
	p := &Parser{c: c}
	if opt != nil {
		p.opt = *opt
	}
	if p.opt.Policy == nil {
		p.opt.Policy = &Policy{}
	}
	p.lim = p.opt.Limits.withDefaults()
	p.opt.Tools = append([]Tool(nil), p.opt.Tools...)
	if c.tag != nil && c.tag.Body.Codec != nil {
		p.dec = c.tag.Body.Codec.NewDecoder()
		p.passer, _ = p.dec.(grammar.Passing)
		if h, ok := p.dec.(grammar.Holding); ok {
			h.Hold(p.lim.HeldBytes)
		}
	}
	if f := p.opt.TokenID; f != nil {
		p.ids, p.isID = map[string]uint32{}, map[uint32]bool{}
		for _, m := range c.g.Markers() {
			if id, ok := f(m.Text); ok {
				p.ids[m.Text], p.isID[id] = id, true
			}
		}
	}
	p.textMarkers, p.reasonMarkers = c.sets(&p.opt)
	p.runs = p.plainRuns()
	p.Reset()
	return p
}

// Grammar returns the grammar that p runs; nil if the parser is the user's own. The caller must not change it.
func (p *Parser) Grammar() *grammar.Grammar {
	if p.c == nil {
		return nil
	}
	return p.c.g
}
