// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Catalog holds the models of a server, with aliases resolved. The zero value is empty. A Catalog is immutable and safe
// for concurrent use by multiple goroutines.
type Catalog struct {
	models []Model
	index  map[string]int
}

// Error describes an invalid record.
type Error struct {
	ID    string // ID of the record, as given
	Field string // JSON name of the invalid field
	Msg   string
}

// Error returns the record, the field and the problem.
func (e *Error) Error() string { return fmt.Sprintf("catalog: model %q: %s: %s", e.ID, e.Field, e.Msg) }

// New returns a catalog of models, in the given order. An alias may come before its model, and may refer to another
// alias. It inherits every field that it does not set, and its AliasOf is set to the ID of the model at the end of the
// chain. It does not inherit values that contradict its own fields: token counts greater than its context window, or a
// default effort that is not in its Efforts. New returns an *[Error] for IDs that are empty, duplicate or invalid, for
// aliases of unknown models or of themselves, and for values that would make a client reject the list. The catalog
// shares slices and pointers with the models, which the caller must not modify. Cost: linear in the number of models.
func New(models ...Model) (*Catalog, error) {
	c := &Catalog{models: slices.Clone(models), index: make(map[string]int, len(models))}
	for i := range c.models {
		m := &c.models[i]
		if err := checkID(m); err != nil {
			return nil, err
		}
		if _, ok := c.index[m.ID]; ok {
			return nil, &Error{m.ID, "id", "duplicate"}
		}
		c.index[m.ID] = i
	}
	if err := c.resolve(); err != nil {
		return nil, err
	}
	for i := range c.models {
		if err := check(&c.models[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// resolve sets the inherited fields of every alias.
func (c *Catalog) resolve() error {
	seen := make([]bool, len(c.models)) // it is in path, or was before
	done := make([]bool, len(c.models))
	var path []int
	for i := range c.models {
		for k := i; !done[k]; {
			m := &c.models[k]
			if seen[k] {
				return &Error{m.ID, "alias_of", "the alias refers to itself"}
			}
			seen[k], path = true, append(path, k)
			if m.AliasOf == "" {
				break
			}
			next, ok := c.index[m.AliasOf]
			if !ok {
				return &Error{m.ID, "alias_of", fmt.Sprintf("unknown model %q", m.AliasOf)}
			}
			k = next
		}
		for ; len(path) > 0; path = path[:len(path)-1] {
			k := path[len(path)-1]
			if m := &c.models[k]; m.AliasOf != "" {
				base := &c.models[c.index[m.AliasOf]]
				m.inherit(base)
				m.AliasOf = base.ServedBy()
			}
			done[k] = true
		}
	}
	return nil
}

// Lookup returns the record with the given ID. The record of an alias has the alias's ID and the inherited profile. The
// caller must not modify it.
func (c *Catalog) Lookup(id string) (*Model, bool) {
	i, ok := c.index[id]
	if !ok {
		return nil, false
	}
	return &c.models[i], true
}

// Models returns all records in the order given to [New], with aliases resolved. The caller must not modify them.
func (c *Catalog) Models() []Model { return c.models }

func checkID(m *Model) error {
	switch {
	case m.ID == "":
		return &Error{m.ID, "id", "empty"}
	case !utf8.ValidString(m.ID):
		return &Error{m.ID, "id", "not valid UTF-8"}
	case strings.ContainsFunc(m.ID, unicode.IsControl):
		return &Error{m.ID, "id", "contains control characters"}
	case strings.HasPrefix(m.ID, "/") || strings.HasSuffix(m.ID, "/"):
		return &Error{m.ID, "id", "must not start or end with a slash"}
	}
	return nil
}

// check returns an error for values that would make clients reject the list.
func check(m *Model) error {
	for _, f := range []struct {
		field, value string
		words        []string
	}{
		{"truncation_policy.mode", m.Truncation.Mode, []string{"bytes", "tokens"}},
		{"default_verbosity", m.DefaultVerbosity, []string{"low", "medium", "high"}},
		{"apply_patch_tool_type", m.ApplyPatch, []string{"freeform"}},
		{"shell_type", m.Shell, []string{"default", "local", "unified_exec", "shell_command", "disabled"}},
		{"visibility", m.Visibility, []string{"list", "hide", "none"}},
	} {
		if f.value != "" && !slices.Contains(f.words, f.value) {
			return &Error{m.ID, f.field, fmt.Sprintf("%q is not one of %s", f.value, strings.Join(f.words, ", "))}
		}
	}
	for _, f := range []struct {
		field string
		n     int64
	}{
		{"created", m.Created}, {"context_window", m.ContextWindow}, {"max_input_tokens", m.MaxInputTokens}, {"max_output_tokens", m.MaxOutputTokens},
		{"auto_compact_token_limit", m.AutoCompactTokens}, {"effective_context_window_percent", m.EffectivePercent}, {"truncation_policy.limit", m.Truncation.Limit},
	} {
		if f.n < 0 {
			return &Error{m.ID, f.field, "negative"}
		}
	}
	switch {
	case m.EffectivePercent > 100:
		return &Error{m.ID, "effective_context_window_percent", "greater than 100"}
	case m.ContextWindow > 0 && m.MaxInputTokens > m.ContextWindow:
		return &Error{m.ID, "max_input_tokens", "greater than the context window"}
	case m.Truncation.Mode == "tokens" && m.Truncation.Limit == 0:
		return &Error{m.ID, "truncation_policy.limit", "missing"}
	}
	for _, s := range m.Modalities {
		if s != "text" && s != "image" && s != "audio" {
			return &Error{m.ID, "input_modalities", fmt.Sprintf("%q is not one of text, image, audio", s)}
		}
	}
	for _, e := range m.Efforts {
		if e.Effort == "" {
			return &Error{m.ID, "supported_reasoning_levels", "a level has no effort"}
		}
	}
	if m.DefaultEffort != "" && m.Efforts != nil && !hasEffort(m.Efforts, m.DefaultEffort) {
		return &Error{m.ID, "default_reasoning_level", fmt.Sprintf("%q is not one of the reasoning levels", m.DefaultEffort)}
	}
	return nil
}
