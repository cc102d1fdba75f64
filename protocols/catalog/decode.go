// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"time"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// limits limits the size of a server's response, whose model cards may be long.
var limits = jsonscan.Limits{Bytes: 64 << 20, Depth: 128, Values: 1 << 20}

// ParseList parses a server's list of models, in any of the forms or as a bare array. It ignores fields of unexpected
// types; a model without an ID is an error. A value that was written for an unknown one, because the form requires the
// field, is returned as written. The strings of the result share memory with body. Errors are *[block.Error].
func ParseList(body []byte) ([]Model, error) {
	doc, err := jsonscan.Scan(body, limits)
	if err != nil {
		return nil, streamdec.Fault(err)
	}
	list := doc.Root()
	if list.Kind() == jsonscan.Object {
		if data := list.Get("data"); data.Exists() {
			list = data
		} else if models := list.Get("models"); models.Exists() {
			list = models
		}
	}
	if list.IsNull() { // a server without models
		return nil, nil
	}
	if list.Kind() != jsonscan.Array {
		return nil, streamdec.Wrong(list, "a list of models")
	}
	out := make([]Model, 0, list.Len())
	for e := list.First(); e.Exists(); e = list.Next(e) {
		m, err := decode(e)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// ParseModel parses the description of one model in any of the forms. See [ParseList].
func ParseModel(body []byte) (Model, error) {
	doc, err := jsonscan.Scan(body, limits)
	if err != nil {
		return Model{}, streamdec.Fault(err)
	}
	return decode(doc.Root())
}

func decode(v jsonscan.Value) (Model, error) {
	m := Model{
		ID: str(v, "id"), OwnedBy: str(v, "owned_by"), DisplayName: str(v, "display_name"), Description: str(v, "description"),
		Root: str(v, "root"), Parent: str(v, "parent"),
		ContextWindow:   count(v, "max_model_len", "max_context_window", "context_window", "context_length"),
		MaxInputTokens:  count(v, "max_input_tokens"),
		MaxOutputTokens: count(v, "max_output_tokens", "max_tokens"),
	}
	if m.ID == "" {
		m.ID = str(v, "slug")
		decodeCodex(v, &m)
	}
	if m.ID == "" {
		off, _ := v.Span()
		path := jsonscan.AppendPathKey([]byte(v.Path()), []byte("id"))
		return m, &block.Error{Kind: block.WrongType, Path: string(path), Offset: int64(off), Msg: "a string is required", Answer: true}
	}
	if c := v.Get("capabilities"); c.Kind() == jsonscan.Object {
		m.Capabilities = c.Raw()
	}
	if f, ok := v.Get("created").Float(); ok && f > 0 && f <= maxCreated {
		m.Created = int64(f)
	} else if t, err := time.Parse(time.RFC3339, str(v, "created_at")); err == nil {
		m.Created = max(0, t.Unix())
	}
	return m, nil
}

// decodeCodex reads the fields that only Codex's form has. See appendCodex.
func decodeCodex(v jsonscan.Value, m *Model) {
	if n := count(v, "context_window"); n < m.ContextWindow {
		m.MaxInputTokens = n
	}
	m.AutoCompactTokens = count(v, "auto_compact_token_limit")
	m.EffectivePercent = count(v, "effective_context_window_percent")
	policy := v.Get("truncation_policy")
	m.Truncation = Truncation{Mode: str(policy, "mode"), Limit: count(policy, "limit")}
	levels := v.Get("supported_reasoning_levels")
	for e := levels.First(); e.Exists(); e = levels.Next(e) {
		if name := str(e, "effort"); name != "" {
			m.Efforts = append(m.Efforts, Effort{Effort: name, Description: str(e, "description")})
		}
	}
	m.DefaultEffort = str(v, "default_reasoning_level")
	m.ReasoningSummaries = support(v, "supports_reasoning_summary_parameter")
	if old := support(v, "supports_reasoning_summaries"); m.ReasoningSummaries == nil && is(old) != (len(m.Efforts) > 0) {
		m.ReasoningSummaries = old
	}
	m.Verbosity = support(v, "support_verbosity")
	m.DefaultVerbosity = str(v, "default_verbosity")
	m.ParallelCalls = support(v, "supports_parallel_tool_calls")
	m.ApplyPatch = str(v, "apply_patch_tool_type")
	m.Shell = str(v, "shell_type")
	m.Tools = texts(v, "experimental_supported_tools")
	m.Modalities = texts(v, "input_modalities")
	m.Visibility = str(v, "visibility")
	if n, ok := v.Get("priority").Int(); ok {
		m.Priority = int32(min(max(n, math.MinInt32), math.MaxInt32))
	}
	if m.BaseInstructions = str(v, "base_instructions"); m.BaseInstructions == codexInstructions {
		m.BaseInstructions = ""
	}
}

func str(v jsonscan.Value, name string) string {
	s, _ := v.Get(name).Str(nil)
	return s
}

// count returns the value of the first of the named fields that is an integer above 0, or 0.
func count(v jsonscan.Value, names ...string) int64 {
	for _, name := range names {
		if n, ok := v.Get(name).Int(); ok && n > 0 {
			return n
		}
	}
	return 0
}

func support(v jsonscan.Value, name string) *bool {
	if b, ok := v.Get(name).Bool(); ok {
		return &b
	}
	return nil
}

func texts(v jsonscan.Value, name string) []string {
	list := v.Get(name)
	if list.Kind() != jsonscan.Array {
		return nil
	}
	out := make([]string, 0, list.Len())
	for e := list.First(); e.Exists(); e = list.Next(e) {
		if s, ok := e.Str(nil); ok {
			out = append(out, s)
		}
	}
	return out
}
