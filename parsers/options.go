// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"fmt"

	"github.com/weft-go/weft/parsers/internal/args"
)

// Options configures a Parser. The zero value parses all output of the family.
type Options struct {
	// Tools are the tools of the request; they type the arguments of families that write them as raw text.
	Tools []Tool
	// Prompt is the prompt that the output continues, or its last 256 bytes or more. It determines Start if that is
	// unspecified: chat templates open reasoning at the end of the prompt, close it at once when thinking is off, or
	// open the response. White space at its end is ignored.
	Prompt string
	// Start specifies where generation begins. If it is unspecified and there is no Prompt, the family decides.
	Start Start
	// Output reports whether the engine constrains the output to JSON.
	Output Output
	// Allow lists the only tools that may be called, if it is not nil (tool_choice: a named tool, or allowed_tools): calls to
	// others abort with event.NotAllowed. A GuidedNamed document calls the only one. It must not change while the parser is in use.
	Allow []string
	// Channels limits parsing to reasoning or to calls; the zero value is both. It applies to families with tags inside
	// plain text; if all output is in frames, frames are parsed as usual.
	Channels Channels
	// SingleCall allows one call: later ones abort with event.NotAllowed (parallel_tool_calls: false).
	SingleCall bool
	// NoCalls forbids calls (tool_choice: none, or a request without tools). Tagged families then keep tool markup as
	// text, since the model was not asked to call; families that frame everything abort the call with event.NotAllowed.
	NoCalls bool
	// Policy selects behavior on which other parsers disagree.
	Policy Policy
	// Limits bounds the cost of hostile output; zero fields mean the defaults.
	Limits Limits
	// TokenID returns the ID of a marker that is one added token in the vocabulary. It is needed only for AppendTokens,
	// and is called once per marker.
	TokenID func(marker string) (uint32, bool)
	// Choice is copied into every event.
	Choice int32
}

// check returns an error if o, which may be nil, is invalid.
func (o *Options) check() error {
	if o != nil && o.Output == GuidedNamed && len(o.Allow) != 1 {
		return fmt.Errorf("parsers: GuidedNamed requires one name in Options.Allow, not %d", len(o.Allow))
	}
	return nil
}

// calls reports whether calls are parsed.
func (o *Options) calls() bool { return o.Channels != OnlyReasoning && !o.NoCalls }

// Tool is one tool of a request.
type Tool struct {
	Name   string
	Schema []byte // JSON Schema of the arguments object; may be nil; must not change while the parser is in use

	compiled *args.Schema
}

// Start specifies where generation begins.
type Start uint8

// The positions at which generation may begin. It is StartReasoning if the chat template ends the prompt with the
// opening tag of reasoning, and StartResponse if it opens the response.
const (
	StartUnspecified Start = iota // derived from the prompt; without a prompt before any marker, or inside reasoning if the family's templates open it
	StartTurn                     // before any marker
	StartReasoning                // inside reasoning
	StartResponse                 // inside the response: reasoning tags are ordinary text; frames still route
)

// Output is the form that the engine enforces.
type Output uint8

// The forms of output.
const (
	Native         Output = iota // the family's own
	GuidedRequired               // one call object or an array of them; held until complete, all or nothing
	GuidedNamed                  // the bare arguments object of the tool in Options.Allow; streamed
)

// Channels specifies which structure is parsed; the rest stays text.
type Channels uint8

// The channels.
const (
	Both          Channels = iota // reasoning and calls
	OnlyTools                     // calls; reasoning markers are text
	OnlyReasoning                 // reasoning; tool markup is text
)

// Limits bounds the memory and the output of a parser.
type Limits struct {
	// ArgumentBytes bounds the arguments of one call; 0 means 16 MiB. A call that exceeds it is aborted.
	ArgumentBytes int64
	// HeldBytes bounds the bytes held back while arguments that cannot be streamed are incomplete; 0 means 4 MiB. A
	// call that exceeds it is aborted; a guided document that exceeds it is text.
	HeldBytes int
	// Calls bounds the calls of one response, including aborted ones; 0 means 4096. If there are more, Append returns a
	// *LimitError.
	Calls int32
	// Parameters bounds the parameters of one call in families that tag them; 0 means 1024. A call that exceeds it is
	// aborted.
	Parameters int
}

func (l Limits) withDefaults() Limits {
	if l.ArgumentBytes <= 0 {
		l.ArgumentBytes = 16 << 20
	}
	if l.HeldBytes <= 0 {
		l.HeldBytes = 4 << 20
	}
	if l.Calls <= 0 {
		l.Calls = 4096
	}
	if l.Parameters <= 0 {
		l.Parameters = 1024
	}
	return l
}
