// SPDX-License-Identifier: Apache-2.0

package parsers

import "github.com/weft-go/weft/protocols/event"

// Stream is a parser of the user's own, for output that no grammar describes. See [Registry.ExtendFunc].
//
// It must keep what [Parser] promises: the same assembled events however the output is cut, spans that never go back,
// ToolEnd only for complete calls, Data valid until the next call. A Stream serves one response at a time.
type Stream interface {
	// Feed is as [Parser.Feed]. The chunk must not be retained.
	Feed(dst []event.Event, chunk []byte) ([]event.Event, error)
	// Close is as [Parser.Close]; it is called once.
	Close(dst []event.Event) ([]event.Event, error)
	// Reset makes the stream ready for the next response, also after an error.
	Reset()
}

// TokenStream is a Stream that can use token ids. Without it FeedTokens drops them.
type TokenStream interface {
	Stream
	// FeedTokens is as [Parser.FeedTokens].
	FeedTokens(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error)
}

// wrap returns a Parser around a stream of the user's own.
func wrap(s Stream) *Parser {
	p := &Parser{stream: s}
	p.Reset()
	return p
}

// feedStream hands a chunk to a stream of the user's own.
func (p *Parser) feedStream(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error) {
	if t, ok := p.stream.(TokenStream); ok && tokens != nil {
		dst, p.err = t.FeedTokens(dst, chunk, tokens)
	} else {
		dst, p.err = p.stream.Feed(dst, chunk)
	}
	return dst, p.err
}

func (p *Parser) closeStream(dst []event.Event) ([]event.Event, error) {
	p.ended = true
	dst, p.err = p.stream.Close(dst)
	return dst, p.err
}
