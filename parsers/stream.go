// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/protocols/event"
)

// Stream is a parser of the user's own, for output that no grammar describes. See [Registry.ExtendFunc].
//
// It must keep what [Parser] promises: the same assembled events however the output is cut, spans that never go back,
// ToolEnd only for complete calls, Data valid until the next call. A Stream serves one response at a time.
type Stream interface {
	// Append is as [Parser.AppendTokens]; tokens is nil if the ids are not known. Chunk and tokens must not be retained.
	Append(dst []event.Event, chunk []byte, tokens []Token) ([]event.Event, error)
	// Finish is as [Parser.Finish], and is called once. It appends what was held back; the Parser appends event.Finish.
	Finish(dst []event.Event, why event.Why) ([]event.Event, error)
	// Reset makes the stream ready for the next response, also after an error.
	Reset()
}
