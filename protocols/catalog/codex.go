// SPDX-License-Identifier: Apache-2.0

package catalog

import "cmp"

// The values that Codex assumes for a model without a record (model_info_from_slug). They are written for unknown
// values of required fields.
const (
	codexShell      = "default"
	codexVisibility = "list" // Codex assumes none, for a model that is not in a list
	codexMode       = "bytes"
	codexLimit      = 10000
)

// codexInstructions is written if BaseInstructions is empty, because an empty text would leave the model without
// instructions.
const codexInstructions = "You are a coding agent. You read and change the user's files and run commands by calling the tools you have been given.\n" +
	"- Look at the code around a change before you make it, and keep to its style.\n" +
	"- Do what was asked, all of it and nothing else. Leave changes that are not yours alone.\n" +
	"- Run the checks that the project has. When a call fails, read its error and try another way.\n" +
	"- Go on until the task is done. At the end, say briefly what you did and what you could not check."

// appendCodex appends a record with every field that some version of Codex requires. The field that specifies whether a
// request may have a reasoning object has two names; Codex treats the later one as true if it is absent.
func appendCodex(dst []byte, m *Model) []byte {
	dst = appendString(dst, `{"slug":`, m.ID)
	dst = appendString(dst, `,"display_name":`, cmp.Or(m.DisplayName, m.ID))
	dst = appendNullable(dst, `,"description":`, m.Description)
	if m.DefaultEffort != "" {
		dst = appendString(dst, `,"default_reasoning_level":`, m.DefaultEffort)
	}
	dst = append(dst, `,"supported_reasoning_levels":[`...)
	for i, e := range m.Efforts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, `{"effort":`, e.Effort)
		dst = append(appendString(dst, `,"description":`, e.Description), '}')
	}
	dst = append(dst, ']')
	dst = appendString(dst, `,"shell_type":`, cmp.Or(m.Shell, codexShell))
	dst = appendString(dst, `,"visibility":`, cmp.Or(m.Visibility, codexVisibility))
	dst = appendInt(dst, `,"supported_in_api":true,"priority":`, int64(m.Priority))
	dst = appendString(dst, `,"availability_nux":null,"upgrade":null,"base_instructions":`, cmp.Or(m.BaseInstructions, codexInstructions))
	dst = appendBool(dst, `,"supports_reasoning_summaries":`, is(m.ReasoningSummaries) || m.ReasoningSummaries == nil && len(m.Efforts) > 0)
	if m.ReasoningSummaries != nil {
		dst = appendBool(dst, `,"supports_reasoning_summary_parameter":`, is(m.ReasoningSummaries))
	}
	dst = appendBool(dst, `,"support_verbosity":`, is(m.Verbosity))
	dst = appendNullable(dst, `,"default_verbosity":`, m.DefaultVerbosity)
	dst = appendNullable(dst, `,"apply_patch_tool_type":`, m.ApplyPatch)
	dst = appendString(dst, `,"truncation_policy":{"mode":`, cmp.Or(m.Truncation.Mode, codexMode))
	dst = appendInt(dst, `,"limit":`, cmp.Or(max(0, m.Truncation.Limit), codexLimit))
	dst = appendBool(dst, `},"supports_parallel_tool_calls":`, is(m.ParallelCalls))
	// Codex uses context_window for its input; a user can raise it up to max_context_window.
	dst = appendCount(dst, `,"context_window":`, cmp.Or(m.MaxInputTokens, m.ContextWindow))
	dst = appendCount(dst, `,"max_context_window":`, max(m.MaxInputTokens, m.ContextWindow))
	dst = appendCount(dst, `,"auto_compact_token_limit":`, m.AutoCompactTokens)
	dst = appendCount(dst, `,"effective_context_window_percent":`, m.EffectivePercent)
	dst = appendStrings(dst, `,"experimental_supported_tools":`, m.Tools)
	if m.Modalities != nil {
		dst = appendStrings(dst, `,"input_modalities":`, m.Modalities)
	}
	return append(dst, '}')
}

// is reports whether b is known and true.
func is(b *bool) bool { return b != nil && *b }
