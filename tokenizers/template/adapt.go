// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/calltext"
	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
)

// Names that are written into messages.
var (
	nameRole      = jinja.NewStr("role", nil)
	nameContent   = jinja.NewStr("content", nil)
	nameArguments = jinja.NewStr("arguments", nil)
	nameType      = jinja.NewStr("type", nil)
	nameText      = jinja.NewStr("text", nil)
	empty         = jinja.NewStr("", nil)

	knownRoles = map[string]*jinja.Str{
		"system": jinja.NewStr("system", nil), "user": jinja.NewStr("user", nil), "assistant": jinja.NewStr("assistant", nil),
		"tool": jinja.NewStr("tool", nil), "developer": jinja.NewStr("developer", nil), "function": jinja.NewStr("function", nil),
	}
)

// adapt changes a message to what the template prints, and returns its role.
func (t *compiled) adapt(b *jinja.Builder, m *jinja.Dict) (string, error) {
	role := ""
	if v, _ := m.Get("role"); v != nil {
		if s, ok := v.(*jinja.Str); ok {
			role = s.String()
			if known := knownRoles[role]; known != nil {
				m.Set(nameRole, known)
			}
		}
	}
	if t.calls != nil {
		t.writeCalls(m)
	}
	if !t.raw {
		// As in transformers 5: many templates test only whether a field such as tool_calls is defined.
		m.DeleteNulls("content")
		if err := t.adaptContent(m, role); err != nil {
			return "", err
		}
		t.adaptReasoning(m)
	}
	calls, _ := m.Get("tool_calls")
	list, ok := calls.(*jinja.List)
	if ok && len(list.Items) > 0 && !t.raw && t.caps().reasoningOrText {
		t.joinReasoning(m)
	}
	if !ok || len(list.Items) == 0 || t.opt.Arguments == rawArguments && t.raw {
		return role, nil
	}
	for i, c := range list.Items {
		call, ok := c.(*jinja.Dict)
		if !ok {
			continue
		}
		if f, ok := call.Get("function"); ok {
			fn, ok := f.(*jinja.Dict)
			if !ok {
				continue
			}
			if !t.raw {
				if caps := t.caps(); !caps.toolCalls && caps.flatCalls {
					list.Items[i] = fn
				}
			}
			call = fn
		}
		if err := t.adaptArguments(b, call); err != nil {
			return "", err
		}
	}
	return role, nil
}

// WithCalls returns a copy of the template that writes the past calls of a message into its content, after its text.
// Package prompt calls it, for templates that print no calls.
func (t *compiled) WithCalls(w calltext.Writer) Template {
	out := *t
	out.calls = w
	out.setCaps()
	return &out
}

// writeCalls moves the calls of m to the end of its content.
func (t *compiled) writeCalls(m *jinja.Dict) {
	list, ok := get[*jinja.List](m, "tool_calls")
	if !ok || len(list.Items) == 0 {
		return
	}
	calls := make([]calltext.Call, len(list.Items))
	names, sources := make([]*jinja.Origin, len(calls)), make([]*jinja.Origin, len(calls))
	for i, item := range list.Items {
		call, ok := item.(*jinja.Dict)
		if !ok {
			return // no call: the template gets what it is
		}
		if f, ok := get[*jinja.Dict](call, "function"); ok {
			call = f
		}
		name, ok := get[*jinja.Str](call, "name")
		if !ok {
			return
		}
		calls[i].Name, names[i], sources[i] = name.String(), name.Source(), call.Source()
		switch v, _ := call.Get("arguments"); a := v.(type) {
		case *jinja.Str:
			calls[i].Arguments, sources[i] = a.String(), a.Source()
		case *jinja.Dict:
			calls[i].Arguments, sources[i] = jinja.Dump(a, nil).String(), a.Source()
		}
	}
	var parts []*jinja.Str
	v, _ := m.Get("content")
	before, ok := v.(*jinja.Str)
	if ok {
		parts = append(parts, before)
	}
	several, isList := v.(*jinja.List)
	after := ok && jinja.Trim(before.String()) != "" || isList && len(several.Items) > 0
	for _, p := range t.calls(calls, after) {
		var source *jinja.Origin
		switch {
		case p.Call >= 0 && p.Arguments:
			source = sources[p.Call]
		case p.Call >= 0:
			source = names[p.Call]
		}
		parts = append(parts, jinja.NewStr(p.Text, source))
	}
	text := jinja.Concat(parts...)
	m.Delete("tool_calls")
	if !isList {
		m.Set(nameContent, text)
		return
	}
	part := jinja.NewDict(several.Source())
	part.Set(nameType, nameText)
	part.Set(nameText, text)
	several.Items = append(several.Items[:len(several.Items):len(several.Items)], part)
}

// adaptContent gives the template a content that it prints.
func (t *compiled) adaptContent(m *jinja.Dict, role string) error {
	v, ok := m.Get("content")
	switch c := v.(type) {
	case nil:
		switch caps := t.caps(); {
		case !caps.noContent || ok && (!caps.nullContent || role == "tool"):
			m.Set(nameContent, empty)
		case ok: // the template prints null in a message with calls, but perhaps not in others
			m.Delete("content")
		}
	case *jinja.List:
		if !t.caps().takesList(role) {
			return joinParts(m, c)
		}
		for _, p := range c.Items {
			d, ok := p.(*jinja.Dict)
			if !ok {
				continue
			}
			kind, _ := d.Get("type")
			s, ok := kind.(*jinja.Str)
			if !ok {
				continue
			}
			to := ""
			switch s.String() {
			case "image_url", "input_image":
				to = "image"
			case "video_url", "input_video":
				to = "video"
			case "audio_url", "input_audio":
				to = "audio"
			case "input_text", "output_text":
				to = "text"
			}
			if to != "" {
				d.Set(nameType, jinja.NewStr(to, s.Source()))
			}
		}
	}
	return nil
}

// joinParts replaces a list of text parts by their text, one to a line, as vLLM does for templates that
// want a string.
func joinParts(m *jinja.Dict, l *jinja.List) error {
	var parts []*jinja.Str
	for i, p := range l.Items {
		text := p
		kind := ""
		if d, ok := p.(*jinja.Dict); ok {
			text, _ = d.Get("text")
			if k, _ := d.Get("type"); k != nil {
				if s, ok := k.(*jinja.Str); ok {
					kind = s.String()
				}
			}
		}
		s, ok := text.(*jinja.Str)
		if !ok {
			return &Error{path: fmt.Sprintf("%s.content[%d]", m.Source().Path(), i), reason: fmt.Sprintf("is not text but %q", kind)}
		}
		if i > 0 {
			parts = append(parts, jinja.NewStr("\n", l.Source()))
		}
		parts = append(parts, s)
	}
	m.Set(nameContent, jinja.Concat(parts...))
	return nil
}

// reasoningKeys are the names under which templates look for reasoning.
var reasoningKeys = [...]string{"reasoning_content", "reasoning", "thinking"}

// adaptReasoning puts reasoning under the name that the template reads. Empty reasoning counts too: some templates look for
// reasoning in the content of a message without any.
func (t *compiled) adaptReasoning(m *jinja.Dict) {
	key := ""
	var text *jinja.Str
	for _, k := range reasoningKeys {
		s, ok := get[*jinja.Str](m, k)
		if ok && (text == nil || text.String() == "" && s.String() != "") {
			key, text = k, s
		}
	}
	if text == nil {
		return
	}
	if want := t.caps().reasoningKey; want != "" && want != key {
		if s, ok := get[*jinja.Str](m, want); !ok || s.String() == "" {
			m.Delete(key)
			m.Set(jinja.NewStr(want, nil), text)
		}
	}
}

// joinReasoning moves the content of a message to the end of its reasoning, if it has both.
func (t *compiled) joinReasoning(m *jinja.Dict) {
	key := jinja.NewStr(t.caps().reasoningKey, nil)
	reasoning, ok1 := get[*jinja.Str](m, key.String())
	content, ok2 := get[*jinja.Str](m, "content")
	if ok1 && ok2 && reasoning.String() != "" && content.String() != "" {
		m.Set(key, jinja.Concat(reasoning, jinja.NewStr("\n\n", m.Source()), content))
		m.Set(nameContent, empty)
	}
}

func get[T jinja.Value](d *jinja.Dict, key string) (T, bool) {
	v, _ := d.Get(key)
	x, ok := v.(T)
	return x, ok
}

// adaptArguments gives the template arguments in a form that it prints.
func (t *compiled) adaptArguments(b *jinja.Builder, call *jinja.Dict) error {
	v, ok := call.Get("arguments")
	if !ok || t.opt.Arguments == rawArguments {
		return nil
	}
	switch a := v.(type) {
	case *jinja.Str:
		optional := false // the template also prints strings
		if t.opt.Arguments != objectArguments {
			caps := t.caps()
			if caps.stringArguments && !caps.mappings || !caps.objectArguments {
				return nil
			}
			optional = caps.stringArguments
		}
		if jinja.Trim(a.String()) == "" {
			call.Set(nameArguments, jinja.NewDict(a.Source()))
			return nil
		}
		path := call.Source().Path() + ".arguments"
		parsed, err := b.ParseString(a, path, a.Source())
		_, ok := parsed.(*jinja.Dict)
		switch {
		case optional && (err != nil || !ok):
			return nil
		case err != nil:
			return fromJSON(err)
		case !ok:
			return &Error{path: path, reason: "is not an object"}
		}
		call.Set(nameArguments, parsed)
	case *jinja.Dict:
		if t.opt.Arguments != objectArguments {
			if caps := t.caps(); caps.stringArguments && !caps.objectArguments {
				call.Set(nameArguments, jinja.Dump(a, a.Source()))
			}
		}
	case nil:
		if t.opt.Arguments == objectArguments {
			call.Set(nameArguments, jinja.NewDict(call.Source()))
		}
	}
	return nil
}
