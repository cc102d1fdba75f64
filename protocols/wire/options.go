// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/replay"
)

// Options configures an [Encoder]. Settings that a request specifies are taken from the request.
type Options struct {
	// ID is the ID of the response, normally [API.IDPrefix] and a unique suffix. Missing call IDs are derived from it,
	// so it should be unique within a conversation. If empty, it is a hash of the request and of the time that Now returns.
	ID string
	// Model is the model name in the response. If empty, it is the request's.
	Model string
	// Now returns the current time, for the times at which the response was created and completed. If nil, it is
	// [time.Now].
	Now func() time.Time

	// Reasoning selects the form of reasoning.
	Reasoning Reasoning
	// Details selects the chat responses that have reasoning_details.
	Details Details
	// Signer signs reasoning, or seals it if the client does not get the text, so that reasoning which the client
	// returns can be verified. If nil, the tokens are unsigned and prove nothing. A signature in the events takes
	// precedence.
	Signer *replay.Signer

	// WholeCalls holds each call back until it is complete and sends it in one piece. Aborted calls are then never
	// sent. Calls that overlap are sent in the order in which they end.
	WholeCalls bool
	// CallsInReasoning sends calls inside reasoning. By default they are left out.
	CallsInReasoning bool
	// ToolDispatch adds Dynamo's event tool_call_dispatch to chat streams. It contains a whole call that may run by the
	// rules of [event.Dispatcher], as soon as it is complete. Clients that do not know the event may mistake it for a
	// chunk.
	ToolDispatch bool
	// ReasoningDispatch adds Dynamo's event reasoning_dispatch to chat streams. It contains a whole run of reasoning.
	ReasoningDispatch bool

	// NotStored specifies that the server does not store the response: store is false in responses of the Responses API, also if
	// the request asks for true.
	NotStored bool
}

// Reasoning selects the form of reasoning in a response.
//
//	             chat                 responses                messages
//	Unspecified  reasoning_content    summary                  thinking, or as the request's thinking.display
//	Plain        reasoning            reasoning_text           thinking
//	Both         both fields          summary                  thinking
//	Omitted      none                 encrypted_content alone  signature alone
//	None         none                 none                     none
type Reasoning uint8

const (
	// ReasoningUnspecified is the form that most clients of the API support.
	ReasoningUnspecified Reasoning = iota
	// ReasoningPlain is the field reasoning of vLLM and OpenRouter, and the raw reasoning_text of the Responses API.
	ReasoningPlain
	// ReasoningBoth writes the text to both fields of the Chat API.
	ReasoningBoth
	// ReasoningOmitted hides the text. With a Signer the text is sealed, up to the limit of the Signer, and held until
	// its run ends.
	ReasoningOmitted
	// ReasoningNone omits reasoning. The Responses API still sends signatures of the events.
	ReasoningNone
)

// Details selects the chat responses that have OpenRouter's list reasoning_details. The list has the signature of each
// run of reasoning and its position among text and calls, so that a client that returns the list preserves both.
type Details uint8

const (
	// DetailsInterleaved writes the list if reasoning follows text or a call, which a single string cannot express.
	DetailsInterleaved Details = iota
	// DetailsAlways writes the list for all reasoning.
	DetailsAlways
	// DetailsNever writes no list.
	DetailsNever
)

// settings are the Options and the settings of the request.
type settings struct {
	Options
	api     *API
	req     *block.Request
	created int64 // Unix time in seconds
}

func (a *API) settings(req *block.Request, opt *Options) *settings {
	s := &settings{api: a, req: req}
	if opt != nil {
		s.Options = *opt
	}
	if s.Model == "" {
		s.Model = req.Params().Model
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	now := s.Now()
	s.created = now.Unix()
	if s.ID == "" {
		s.ID = a.idPrefix + s.hash(now)
	}
	return s
}

// hash returns a hash of the request and the time for response IDs.
func (s *settings) hash(now time.Time) string {
	body := s.req.Body()
	if body == nil { // the request was built; values that cannot be encoded do not change the hash
		body, _, _ = s.api.encode(nil, s.req, nil)
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano())))
	h.Write(body)
	sum := h.Sum(nil)
	return base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15])
}

// custom returns a function that reports whether the client declared a tool with free-text arguments, or nil if there
// are no such tools.
func (s *settings) custom() func(tool string) bool {
	isCustom := func(t block.Tool) bool { return t.Kind == block.CustomTool }
	if !slices.ContainsFunc(s.req.Tools(), isCustom) {
		return nil
	}
	return func(name string) bool {
		t, ok := s.req.Tool("", name)
		return ok && isCustom(t)
	}
}

// namespace returns a function that splits the model's name of a tool, or nil if no tool has a namespace.
func (s *settings) namespace() func(tool string) (namespace, name string) {
	if !slices.ContainsFunc(s.req.Tools(), func(t block.Tool) bool { return t.Namespace != "" }) {
		return nil
	}
	return func(tool string) (namespace, name string) {
		if t, ok := s.req.Tool("", tool); ok {
			return t.Namespace, t.Name
		}
		return "", tool
	}
}

// functions reports whether the request declares functions, the form that tools had before.
func (s *settings) functions() bool {
	tools := s.req.Tools()
	return s.req.API() == block.Chat && len(tools) > 0 && strings.HasPrefix(tools[0].At.Path(), "functions[")
}

// seal reports whether reasoning items of the Responses API have encrypted_content. By default they do, as OpenAI's have
// since 2026.
func (s *settings) seal() bool {
	return s.Reasoning == ReasoningOmitted || s.Reasoning != ReasoningNone && s.req.API() == block.Responses
}

// omitted reports whether the request asks to omit the text of reasoning.
func (s *settings) omitted() bool {
	return s.Reasoning == ReasoningOmitted || s.Reasoning == ReasoningUnspecified &&
		s.req.API() == block.Messages && string(s.req.Field("thinking", "display")) == `"omitted"`
}

func (s *settings) continuousUsage() bool {
	return string(s.req.Field("stream_options", "continuous_usage_stats")) == "true"
}

func (s *settings) chat() chatanswer.Options {
	return chatanswer.Options{
		ID: s.ID, Model: s.Model, Created: s.created, IncludeUsage: s.req.Params().StreamUsage, ContinuousUsage: s.continuousUsage(),
		Reasoning: map[Reasoning]chatanswer.ReasoningField{
			ReasoningPlain: chatanswer.ReasoningPlain, ReasoningBoth: chatanswer.ReasoningBoth, ReasoningOmitted: chatanswer.ReasoningNone, ReasoningNone: chatanswer.ReasoningNone,
		}[s.Reasoning],
		ReasoningDetails: map[Details]chatanswer.DetailsMode{
			DetailsInterleaved: chatanswer.DetailsInterleaved, DetailsAlways: chatanswer.DetailsAlways, DetailsNever: chatanswer.DetailsNever,
		}[s.Details],
		Signer: s.Signer, WholeCalls: s.WholeCalls, Functions: s.functions(),
		DispatchInReasoning: s.CallsInReasoning, ToolDispatch: s.ToolDispatch, ReasoningDispatch: s.ReasoningDispatch, Custom: s.custom(),
	}
}

func (s *settings) responses() responsesanswer.Options {
	return responsesanswer.Options{
		ID: s.ID, Model: s.Model, Created: s.created, Echo: s.echo,
		Reasoning: map[Reasoning]responsesanswer.Reasoning{
			ReasoningPlain: responsesanswer.ReasoningRaw, ReasoningOmitted: responsesanswer.ReasoningNone, ReasoningNone: responsesanswer.ReasoningNone,
		}[s.Reasoning],
		Seal: s.seal(), Signer: s.Signer, WholeCalls: s.WholeCalls, DispatchInReasoning: s.CallsInReasoning,
		Namespace: s.namespace(), Custom: s.custom(),
	}
}

// echo returns a field that a response of the Responses API repeats, or nil.
func (s *settings) echo(name string) []byte {
	if name == "store" && s.NotStored {
		return nil // its default in responses is false
	}
	return s.req.Field(name)
}

func (s *settings) messages() messagesanswer.Options {
	opt := messagesanswer.Options{
		ID: s.ID, Model: s.Model, Signer: s.Signer, WholeCalls: s.WholeCalls, DispatchInReasoning: s.CallsInReasoning,
	}
	switch {
	case s.Reasoning == ReasoningNone:
		opt.Thinking = messagesanswer.ThinkingNone
	case s.omitted():
		opt.Thinking = messagesanswer.ThinkingOmitted
	}
	return opt
}

func (s *settings) completions() completionsanswer.Options {
	return completionsanswer.Options{
		ID: s.ID, Model: s.Model, Created: s.created, IncludeUsage: s.req.Params().StreamUsage, ContinuousUsage: s.continuousUsage(),
	}
}

// left reports whether a call with the given flags is left out of the response.
func (s *settings) left(f event.Flags) bool {
	return s.api == Completions || f.Has(event.InReasoning) && !s.CallsInReasoning || f.Has(event.Server) && s.api != Messages
}
