// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// Model is a record: a model and the settings of clients for it. ID is required. All other fields are optional; zero or
// nil means unknown.
//
// A slice that is empty but not nil means that the model has no such elements; an alias does not inherit it.
type Model struct {
	ID      string
	AliasOf string // ID of the model that serves requests for this ID; see [New]

	Created     int64  // Unix time in seconds when the model was created. Use a fixed value, because it is part of the ETag
	OwnedBy     string // "" is written as "weft" in OpenAI's form, which requires it
	DisplayName string // human-readable; "" is written as ID if a form requires it
	Description string // human-readable, one line

	// MaxInputTokens <= ContextWindow if both are known.
	ContextWindow   int64 // maximum tokens of prompt and response together
	MaxInputTokens  int64 // maximum tokens of the prompt; 0 is written as ContextWindow if a form has the field
	MaxOutputTokens int64 // maximum tokens of the response

	AutoCompactTokens int64      // tokens at which a harness compacts the conversation; Codex assumes 90 % of the window, which is also its maximum
	EffectivePercent  int64      // percentage of the window that a harness uses; Codex assumes 95
	Truncation        Truncation // limit on the output of tools

	Efforts            []Effort // reasoning levels, lowest first
	DefaultEffort      string   // level of requests that specify none; one of Efforts
	ReasoningSummaries *bool    // whether Codex may send a reasoning object, which contains the effort; nil means true if there are Efforts
	Verbosity          *bool    // whether requests may set text.verbosity
	DefaultVerbosity   string   // low, medium or high
	ParallelCalls      *bool    // whether a response may contain several calls

	// The tools that Codex offers the model.
	ApplyPatch string   // freeform: a tool for patches, of type custom; "" means no such tool
	Shell      string   // default, local, unified_exec, shell_command or disabled; "" is written as default
	Tools      []string // names of experimental tools

	Modalities []string // of the input: text, image, audio. Codex assumes text and image; old versions reject audio
	Visibility string   // in the menu of a harness: list, hide or none; "" is written as list
	Priority   int32    // sort key in the menu, lowest first

	// BaseInstructions is the system prompt that Codex sends. It always replaces the prompt that Codex has for models
	// without a record. "" is written as a few lines that suit any model.
	BaseInstructions string

	Root   string // the model that this model was made from (vLLM)
	Parent string // the base of an adapter (vLLM)

	// Capabilities is Anthropic's object capabilities, as raw JSON. It must be valid.
	Capabilities []byte
}

// Truncation specifies the length to which a harness truncates the output of a tool.
type Truncation struct {
	Mode  string // bytes or tokens; "" is written as bytes
	Limit int64  // number of bytes or tokens; 0 is written as 10,000 if Mode is not tokens
}

// Effort is a level of reasoning.
type Effort struct {
	Effort      string // as in requests: none, minimal, low, medium, high, xhigh; old versions of Codex reject others
	Description string // human-readable
}

// ServedBy returns the ID of the model that serves requests: AliasOf, or ID if m is not an alias. In a [Catalog], it is
// never the ID of an alias.
func (m *Model) ServedBy() string { return cmp.Or(m.AliasOf, m.ID) }

// inherit copies the fields of base to unknown fields of m, except values that contradict fields of m.
func (m *Model) inherit(base *Model) {
	own := *m
	m.Created = cmp.Or(m.Created, base.Created)
	m.OwnedBy = cmp.Or(m.OwnedBy, base.OwnedBy)
	m.DisplayName = cmp.Or(m.DisplayName, base.DisplayName)
	m.Description = cmp.Or(m.Description, base.Description)
	m.ContextWindow = cmp.Or(m.ContextWindow, base.ContextWindow)
	m.MaxInputTokens = cmp.Or(m.MaxInputTokens, base.MaxInputTokens)
	m.MaxOutputTokens = cmp.Or(m.MaxOutputTokens, base.MaxOutputTokens)
	m.AutoCompactTokens = cmp.Or(m.AutoCompactTokens, base.AutoCompactTokens)
	m.EffectivePercent = cmp.Or(m.EffectivePercent, base.EffectivePercent)
	m.Truncation = cmp.Or(m.Truncation, base.Truncation)
	m.Efforts = orSlice(m.Efforts, base.Efforts)
	m.DefaultEffort = cmp.Or(m.DefaultEffort, base.DefaultEffort)
	m.ReasoningSummaries = cmp.Or(m.ReasoningSummaries, base.ReasoningSummaries)
	m.Verbosity = cmp.Or(m.Verbosity, base.Verbosity)
	m.DefaultVerbosity = cmp.Or(m.DefaultVerbosity, base.DefaultVerbosity)
	m.ParallelCalls = cmp.Or(m.ParallelCalls, base.ParallelCalls)
	m.ApplyPatch = cmp.Or(m.ApplyPatch, base.ApplyPatch)
	m.Shell = cmp.Or(m.Shell, base.Shell)
	m.Tools = orSlice(m.Tools, base.Tools)
	m.Modalities = orSlice(m.Modalities, base.Modalities)
	m.Visibility = cmp.Or(m.Visibility, base.Visibility)
	m.Priority = cmp.Or(m.Priority, base.Priority)
	m.BaseInstructions = cmp.Or(m.BaseInstructions, base.BaseInstructions)
	m.Root = cmp.Or(m.Root, base.Root)
	m.Parent = cmp.Or(m.Parent, base.Parent)
	m.Capabilities = orSlice(m.Capabilities, base.Capabilities)

	if own.ContextWindow > 0 {
		if own.MaxInputTokens == 0 && m.MaxInputTokens > own.ContextWindow {
			m.MaxInputTokens = 0
		}
		if own.MaxOutputTokens == 0 && m.MaxOutputTokens > own.ContextWindow {
			m.MaxOutputTokens = 0
		}
		if own.AutoCompactTokens == 0 && m.AutoCompactTokens > own.ContextWindow {
			m.AutoCompactTokens = 0
		}
	}
	if own.Efforts != nil && own.DefaultEffort == "" && !hasEffort(own.Efforts, m.DefaultEffort) {
		m.DefaultEffort = ""
	}
	if own.Verbosity != nil && !*own.Verbosity && own.DefaultVerbosity == "" {
		m.DefaultVerbosity = ""
	}
}

func hasEffort(list []Effort, name string) bool {
	return slices.ContainsFunc(list, func(e Effort) bool { return e.Effort == name })
}

func orSlice[E any](a, b []E) []E {
	if a != nil {
		return a
	}
	return b
}

// PathID returns the model ID in the path of a request, decoded as in url.URL.Path, for example org/name in
// /v1/models/org/name. It ignores any prefix before /v1/models/. ok is false if the path does not contain an ID, like
// the path of the list.
func PathID(path string) (id string, ok bool) {
	_, id, ok = strings.Cut(path, "/v1/models/")
	id = strings.TrimSuffix(id, "/")
	return id, ok && id != ""
}
