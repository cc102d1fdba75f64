// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/weft-go/weft/protocols/catalog"
)

// modelConfig is a catalog.Model with the wire names of its fields. Absent fields are unknown or, for an alias,
// inherited from the model.
type modelConfig struct {
	ID                     string         `yaml:"id"`
	AliasOf                string         `yaml:"alias_of"` // the model if absent
	Created                int64          `yaml:"created"`  // Unix time
	OwnedBy                string         `yaml:"owned_by"`
	DisplayName            string         `yaml:"display_name"`
	Description            string         `yaml:"description"`
	ContextWindow          int64          `yaml:"context_window"`
	MaxInputTokens         int64          `yaml:"max_input_tokens"`
	MaxOutputTokens        int64          `yaml:"max_output_tokens"`
	AutoCompactTokenLimit  int64          `yaml:"auto_compact_token_limit"`
	EffectiveWindowPercent int64          `yaml:"effective_context_window_percent"`
	TruncationPolicy       truncation     `yaml:"truncation_policy"`
	ReasoningLevels        []level        `yaml:"reasoning_levels"`
	DefaultReasoningLevel  string         `yaml:"default_reasoning_level"`
	ReasoningSummaries     *bool          `yaml:"reasoning_summaries"`
	Verbosity              *bool          `yaml:"verbosity"`
	DefaultVerbosity       string         `yaml:"default_verbosity"`
	ParallelToolCalls      *bool          `yaml:"parallel_tool_calls"`
	ApplyPatchToolType     string         `yaml:"apply_patch_tool_type"`
	ShellType              string         `yaml:"shell_type"`
	ExperimentalTools      []string       `yaml:"experimental_tools"`
	InputModalities        []string       `yaml:"input_modalities"`
	Visibility             string         `yaml:"visibility"`
	Priority               int32          `yaml:"priority"`
	BaseInstructions       string         `yaml:"base_instructions"`
	Root                   string         `yaml:"root"`
	Parent                 string         `yaml:"parent"`
	Capabilities           map[string]any `yaml:"capabilities"`
}

type truncation struct {
	Mode  string `yaml:"mode"` // bytes or tokens
	Limit int64  `yaml:"limit"`
}

type level struct {
	Effort      string `yaml:"effort"`
	Description string `yaml:"description"`
}

// records returns the records of a configuration.
func records(list []modelConfig) ([]catalog.Model, error) {
	var out []catalog.Model
	for _, c := range list {
		m := catalog.Model{
			ID: c.ID, AliasOf: c.AliasOf, Created: c.Created, OwnedBy: c.OwnedBy, DisplayName: c.DisplayName, Description: c.Description,
			ContextWindow: c.ContextWindow, MaxInputTokens: c.MaxInputTokens, MaxOutputTokens: c.MaxOutputTokens,
			AutoCompactTokens: c.AutoCompactTokenLimit, EffectivePercent: c.EffectiveWindowPercent, Truncation: catalog.Truncation(c.TruncationPolicy),
			DefaultEffort: c.DefaultReasoningLevel, ReasoningSummaries: c.ReasoningSummaries,
			Verbosity: c.Verbosity, DefaultVerbosity: c.DefaultVerbosity, ParallelCalls: c.ParallelToolCalls,
			ApplyPatch: c.ApplyPatchToolType, Shell: c.ShellType, Tools: c.ExperimentalTools, Modalities: c.InputModalities,
			Visibility: c.Visibility, Priority: c.Priority, BaseInstructions: c.BaseInstructions, Root: c.Root, Parent: c.Parent,
		}
		if c.ReasoningLevels != nil {
			m.Efforts = make([]catalog.Effort, 0, len(c.ReasoningLevels))
		}
		for _, l := range c.ReasoningLevels {
			m.Efforts = append(m.Efforts, catalog.Effort(l))
		}
		if c.Capabilities != nil {
			raw, err := json.Marshal(c.Capabilities)
			if err != nil {
				return nil, fmt.Errorf("config: models: %s: capabilities: %w", c.ID, err)
			}
			m.Capabilities = raw
		}
		out = append(out, m)
	}
	return out, nil
}
