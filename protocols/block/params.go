// SPDX-License-Identifier: Apache-2.0

package block

import "slices"

// Params is what a request says besides turns and tools, as far as this package models it. Pointers are nil where the
// request is silent.
type Params struct {
	Model       string
	Stream      bool
	StreamUsage bool   // Chat: a last chunk with usage is wanted
	MaxTokens   *int64 // output tokens, reasoning included
	Sampling    Sampling
	ToolChoice  ToolChoice
	Thinking    Thinking
	Format      Format
	Verbosity   string // low, medium, high
	User        string // the end user, for abuse detection
	CacheKey    string // prompt_cache_key: requests that share a prefix
	ServiceTier string
}

// Sampling says how tokens are chosen.
type Sampling struct {
	Temperature       *float64
	TopP              *float64
	MinP              *float64 // engines
	TopK              *int64   // Messages, engines
	Seed              *int64
	N                 *int64 // answers wanted
	FrequencyPenalty  *float64
	PresencePenalty   *float64
	RepetitionPenalty *float64 // engines
	Stop              []string
	StopTokens        []int64 // token ids, engines
	IgnoreEOS         bool    // engines
	Logprobs          bool
	TopLogprobs       *int64
}

// ChoiceMode is how far the model may choose to call tools.
type ChoiceMode uint8

// The modes. ChoiceDefault is a request that says nothing, which is Auto with tools and NoTools without.
const (
	ChoiceDefault ChoiceMode = iota
	Auto                     // as it likes
	NoTools                  // never
	Required                 // at least one call
	Named                    // the tool in Name
	Allowed                  // one of several: see the raw field; Required says whether it must
)

// String returns the mode in snake case.
func (m ChoiceMode) String() string {
	return name([]string{"default", "auto", "none", "required", "named", "allowed"}, int(m), "choice")
}

// ToolChoice says which tools the model may call.
type ToolChoice struct {
	Mode ChoiceMode
	// Name is the tool of mode Named.
	Name string
	// Allow lists the tools of mode Allowed.
	Allow []string
	// Must says, for mode Allowed, that a call is required.
	Must bool
	// Serial forbids more than one call in a turn.
	Serial bool
}

// ThinkingMode switches reasoning.
type ThinkingMode uint8

// The modes of reasoning. ThinkingDefault leaves it to the model.
const (
	ThinkingDefault ThinkingMode = iota
	ThinkingOn
	ThinkingOff
	ThinkingAdaptive
)

// Thinking says how the model reasons.
type Thinking struct {
	Mode    ThinkingMode
	Effort  string // none, minimal, low, medium, high, xhigh, max; as written
	Budget  *int64 // tokens
	Summary string // Responses: auto, concise, detailed
}

// Format constrains the visible answer.
type Format struct {
	Type   string // text, json_object, json_schema; "" when the request is silent
	Name   string
	Schema []byte // raw JSON
	Strict *bool

	Description string
}

// Equal reports whether two sets of parameters say the same.
func (p Params) Equal(o Params) bool {
	return p.Model == o.Model && p.Stream == o.Stream && p.StreamUsage == o.StreamUsage &&
		equalPtr(p.MaxTokens, o.MaxTokens) && p.Sampling.Equal(o.Sampling) && p.ToolChoice.Equal(o.ToolChoice) &&
		p.Thinking.Mode == o.Thinking.Mode && p.Thinking.Effort == o.Thinking.Effort &&
		p.Thinking.Summary == o.Thinking.Summary && equalPtr(p.Thinking.Budget, o.Thinking.Budget) &&
		p.Format.Type == o.Format.Type && p.Format.Name == o.Format.Name && p.Format.Description == o.Format.Description &&
		string(p.Format.Schema) == string(o.Format.Schema) && equalPtr(p.Format.Strict, o.Format.Strict) &&
		p.Verbosity == o.Verbosity && p.User == o.User && p.CacheKey == o.CacheKey && p.ServiceTier == o.ServiceTier
}

// Equal reports whether two samplings say the same.
func (s Sampling) Equal(o Sampling) bool {
	return equalPtr(s.Temperature, o.Temperature) && equalPtr(s.TopP, o.TopP) && equalPtr(s.MinP, o.MinP) &&
		equalPtr(s.TopK, o.TopK) && equalPtr(s.Seed, o.Seed) && equalPtr(s.N, o.N) &&
		equalPtr(s.FrequencyPenalty, o.FrequencyPenalty) && equalPtr(s.PresencePenalty, o.PresencePenalty) &&
		equalPtr(s.RepetitionPenalty, o.RepetitionPenalty) && slices.Equal(s.Stop, o.Stop) &&
		slices.Equal(s.StopTokens, o.StopTokens) && s.IgnoreEOS == o.IgnoreEOS && s.Logprobs == o.Logprobs &&
		equalPtr(s.TopLogprobs, o.TopLogprobs)
}

// Equal reports whether two choices say the same.
func (c ToolChoice) Equal(o ToolChoice) bool {
	return c.Mode == o.Mode && c.Name == o.Name && slices.Equal(c.Allow, o.Allow) && c.Must == o.Must && c.Serial == o.Serial
}
