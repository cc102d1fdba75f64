// SPDX-License-Identifier: Apache-2.0

package block

import "slices"

// Params contains the parameters of a request that this package models, other than turns and tools. Pointers are nil if
// the parameter is absent.
type Params struct {
	Model       string
	Stream      bool
	StreamUsage bool   // Chat: the stream ends with a chunk that contains usage
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

// Sampling contains the parameters of token selection.
type Sampling struct {
	Temperature       *float64
	TopP              *float64
	MinP              *float64 // engines
	TopK              *int64   // Messages, engines
	Seed              *int64
	N                 *int64 // number of responses
	FrequencyPenalty  *float64
	PresencePenalty   *float64
	RepetitionPenalty *float64 // engines
	Stop              []string
	StopTokens        []int64 // token IDs, engines
	IgnoreEOS         bool    // engines
	Logprobs          bool
	TopLogprobs       *int64
}

// ChoiceMode specifies whether the model may, must or must not call tools.
type ChoiceMode uint8

// The modes. ChoiceUnspecified, in a request without a tool choice, means Auto if there are tools and NoTools
// otherwise. A tool choice that is not modeled, which [Request.Field] returns, is unspecified, too; conversions report it as a loss.
const (
	ChoiceUnspecified ChoiceMode = iota
	Auto                         // the model decides
	NoTools                      // no calls
	Required                     // at least one call
)

// ToolChoice specifies which tools the model may call.
type ToolChoice struct {
	Mode ChoiceMode
	// Allow restricts modes Auto and Required to the tools with these names; nil allows all. If mode Required allows one tool,
	// the model must call it.
	Allow []string
	// Serial forbids more than one call in a turn.
	Serial bool
}

// ThinkingMode enables or disables reasoning.
type ThinkingMode uint8

// The modes of reasoning. ThinkingUnspecified leaves the choice to the model.
const (
	ThinkingUnspecified ThinkingMode = iota
	ThinkingOn
	ThinkingOff
	ThinkingAdaptive
)

// Thinking configures the model's reasoning.
type Thinking struct {
	Mode    ThinkingMode
	Effort  string // none, minimal, low, medium, high, xhigh, max; other values are preserved
	Budget  *int64 // tokens
	Summary string // Responses: auto, concise, detailed
}

// Format constrains the format of the visible output.
type Format struct {
	Type   string // text, json_object, json_schema; "" if absent
	Name   string
	Schema []byte // raw JSON
	Strict *bool

	Description string
}

// equal reports whether two sets of parameters are the same.
func (p *Params) equal(o *Params) bool {
	return p.Model == o.Model && p.Stream == o.Stream && p.StreamUsage == o.StreamUsage &&
		equalPtr(p.MaxTokens, o.MaxTokens) && p.Sampling.equal(o.Sampling) && p.ToolChoice.equal(o.ToolChoice) &&
		p.Thinking.Mode == o.Thinking.Mode && p.Thinking.Effort == o.Thinking.Effort &&
		p.Thinking.Summary == o.Thinking.Summary && equalPtr(p.Thinking.Budget, o.Thinking.Budget) &&
		p.Format.Type == o.Format.Type && p.Format.Name == o.Format.Name && p.Format.Description == o.Format.Description &&
		string(p.Format.Schema) == string(o.Format.Schema) && equalPtr(p.Format.Strict, o.Format.Strict) &&
		p.Verbosity == o.Verbosity && p.User == o.User && p.CacheKey == o.CacheKey && p.ServiceTier == o.ServiceTier
}

func (s Sampling) equal(o Sampling) bool {
	return equalPtr(s.Temperature, o.Temperature) && equalPtr(s.TopP, o.TopP) && equalPtr(s.MinP, o.MinP) &&
		equalPtr(s.TopK, o.TopK) && equalPtr(s.Seed, o.Seed) && equalPtr(s.N, o.N) &&
		equalPtr(s.FrequencyPenalty, o.FrequencyPenalty) && equalPtr(s.PresencePenalty, o.PresencePenalty) &&
		equalPtr(s.RepetitionPenalty, o.RepetitionPenalty) && slices.Equal(s.Stop, o.Stop) &&
		slices.Equal(s.StopTokens, o.StopTokens) && s.IgnoreEOS == o.IgnoreEOS && s.Logprobs == o.Logprobs &&
		equalPtr(s.TopLogprobs, o.TopLogprobs)
}

func (c ToolChoice) equal(o ToolChoice) bool {
	return c.Mode == o.Mode && slices.Equal(c.Allow, o.Allow) && c.Serial == o.Serial
}
