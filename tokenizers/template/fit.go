// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// Fit returns messages in a form that a template with the capabilities c can print, so that a conversation which the
// template would refuse, or of which it would lose a message, is rendered after all. Notes describe each change with
// the index of the message before Fit. If no change is needed, the same slice is returned; otherwise numbers and white
// space are formatted as in Python.
//
// The changes, each only where c asks for it:
//
//   - developer messages become system messages; several system messages at the beginning become one;
//   - system text further on becomes a user message in <system-reminder> tags, or is added to the user message or tool
//     result before it;
//   - if the template prints no system messages, their text is added before the first user message;
//   - tool calls and results that are not printed become text, in <tool_call> and <tool_response> tags;
//   - adjacent messages of one role are joined; a conversation that may not begin with the assistant, or has no message
//     of a user where one must be, gets an empty one.
//
// If messages is not a list of objects, the error is an [*Error].
func Fit(messages []byte, c *Capabilities) (fitted []byte, notes []string, err error) {
	list, err := parseList(messages, "messages")
	if err != nil {
		return nil, nil, err
	}
	for i, m := range list {
		if m.Kind != jsonval.Object {
			return nil, nil, &Error{path: fmt.Sprintf("messages[%d]", i), reason: "is not an object"}
		}
	}
	list, notes = fit(list, c)
	if len(notes) == 0 {
		return messages, nil, nil
	}
	out := jsonval.Value{Kind: jsonval.Array, List: list}
	return out.AppendJSON(make([]byte, 0, len(messages)+256)), notes, nil
}

// fit is [Fit] for messages that are objects.
func fit(messages []jsonval.Value, c *Capabilities) (fitted []jsonval.Value, notes []string) {
	f := &fitter{c: c}
	for i, m := range messages {
		f.add(i, m)
	}
	f.complete()
	if len(f.notes) == 0 {
		return messages, nil
	}
	return f.out, f.notes
}

// fitter collects messages that can be printed.
type fitter struct {
	c     *Capabilities
	out   []jsonval.Value
	notes []string
	begun bool            // a message of another role than system was seen
	front strings.Builder // system text for the first user message
	joins []jsonval.Value // contents that the last of out is to have, if there are any
}

func (f *fitter) note(i int, what string) {
	f.notes = append(f.notes, fmt.Sprintf("messages[%d]: %s", i, what))
}

func (f *fitter) add(i int, m jsonval.Value) {
	role := m.Get("role").Str
	if role == "developer" && !f.c.developer {
		role = "system"
		m = with(m, "role", str(role))
		f.note(i, "developer became system")
	}
	switch role {
	case "system":
		f.system(i, m)
		return
	case "assistant":
		if !f.c.toolCalls && !f.c.flatCalls && len(m.Get("tool_calls").List) > 0 {
			m = callsAsText(m)
			f.note(i, "tool calls became text")
		}
	case "tool", "function":
		if !f.c.toolRole {
			role = "user"
			m = newMessage(role, "<tool_response>\n"+plain(m.Get("content"))+"\n</tool_response>")
			f.note(i, "a tool result became a user message")
		}
	}
	f.begun = true
	if role == "user" && f.front.Len() > 0 {
		m = with(m, "content", join("\n\n", str(f.front.String()), m.Get("content")))
		f.front.Reset()
	}
	f.turn(i, role, m)
}

// system adds a system message.
func (f *fitter) system(i int, m jsonval.Value) {
	switch {
	case f.begun && !f.c.systemAt(f.last()):
		reminder := newMessage("user", "<system-reminder>\n"+plain(m.Get("content"))+"\n</system-reminder>")
		if role := f.last(); role == "tool" || role == "function" {
			// A user message would be a new question.
			f.note(i, "system text after a tool result was added to the result")
			f.merge(reminder)
			return
		}
		f.note(i, "system text after the first turn became a user message")
		f.turn(i, "user", reminder)
	case !f.begun && !f.c.system:
		f.note(i, "system text went into the first user message")
		if f.front.Len() > 0 {
			f.front.WriteString("\n\n")
		}
		f.front.WriteString(plain(m.Get("content")))
	case !f.begun && !f.c.systemMiddle && len(f.out) > 0:
		f.note(i, "joined to the system message before it")
		f.merge(m)
	default:
		f.push(m)
	}
}

// last returns the role of the last message of out, or "".
func (f *fitter) last() string {
	if len(f.out) == 0 {
		return ""
	}
	return f.out[len(f.out)-1].Get("role").Str
}

// systemAt reports whether a system message is printed after a message of a role, if that is not the first message.
func (c *Capabilities) systemAt(last string) bool {
	switch last {
	case "user", "tool", "function":
		return c.systemAfterUser
	}
	return c.systemMiddle
}

// turn adds a message of another role.
func (f *fitter) turn(i int, role string, m jsonval.Value) {
	if f.last() == role {
		last := f.out[len(f.out)-1]
		if role == "user" && !f.c.consecutiveUsers ||
			role == "assistant" && !f.c.consecutiveAssistants && len(last.Get("tool_calls").List) == 0 {
			f.note(i, "joined to the "+role+" message before it")
			f.merge(m)
			return
		}
	}
	if role == "assistant" && !f.c.assistantFirst && !slices.ContainsFunc(f.out, isTurn) {
		f.note(i, "an empty user message was put before it")
		f.push(newMessage("user", f.front.String()))
		f.front.Reset()
	}
	f.push(m)
}

func isTurn(m jsonval.Value) bool { return m.Get("role").Str != "system" }

// push adds m as it is.
func (f *fitter) push(m jsonval.Value) {
	f.flush()
	f.out = append(f.out, m)
}

// merge joins m to the last message, whose other fields stay; those that only m has are added.
func (f *fitter) merge(m jsonval.Value) {
	last := &f.out[len(f.out)-1]
	if len(f.joins) == 0 {
		f.joins = append(f.joins, last.Get("content"))
	}
	f.joins = append(f.joins, m.Get("content"))
	for i, k := range m.Keys {
		if k != "content" && last.Get(k).Kind == jsonval.Undefined {
			*last = with(*last, k, m.List[i])
		}
	}
}

// flush joins what merge collected, once for all messages: there may be very many.
func (f *fitter) flush() {
	if len(f.joins) > 0 {
		last := &f.out[len(f.out)-1]
		*last = with(*last, "content", join("\n\n", f.joins...))
		f.joins = f.joins[:0]
	}
}

// complete adds a missing user message before the first turn. At the end it would be a new question.
func (f *fitter) complete() {
	f.flush()
	user := slices.ContainsFunc(f.out, func(m jsonval.Value) bool { return m.Get("role").Str == "user" })
	if f.front.Len() > 0 || !user && !f.c.noUser {
		f.notes = append(f.notes, "messages: a user message was added")
		at := slices.IndexFunc(f.out, isTurn)
		if at < 0 {
			at = len(f.out)
		}
		f.out = slices.Insert(f.out, at, newMessage("user", f.front.String()))
	}
}

// callsAsText moves the calls of m into its content.
func callsAsText(m jsonval.Value) jsonval.Value {
	var b strings.Builder
	for _, call := range m.Get("tool_calls").List {
		if fn := call.Get("function"); fn.Kind == jsonval.Object {
			call = fn
		}
		args := call.Get("arguments")
		text := args.Str
		if args.Kind != jsonval.String {
			text = string(args.AppendJSON(nil))
		}
		name := call.Get("name")
		fmt.Fprintf(&b, "<tool_call>\n{\"name\": %s, \"arguments\": %s}\n</tool_call>\n", name.AppendJSON(nil), text)
	}
	text := str(strings.TrimSuffix(b.String(), "\n"))
	out := jsonval.Value{Kind: jsonval.Object}
	for i, k := range m.Keys {
		if k != "tool_calls" {
			out = with(out, k, m.List[i])
		}
	}
	return with(out, "content", join("\n", m.Get("content"), text))
}

func str(s string) jsonval.Value { return jsonval.Value{Kind: jsonval.String, Str: s} }

func newMessage(role, text string) jsonval.Value {
	return jsonval.Value{Kind: jsonval.Object, Keys: []string{"role", "content"}, List: []jsonval.Value{str(role), str(text)}}
}

// with returns m with another value for a key.
func with(m jsonval.Value, key string, v jsonval.Value) jsonval.Value {
	m.Keys, m.List = slices.Clone(m.Keys), slices.Clone(m.List)
	if i := slices.Index(m.Keys, key); i >= 0 {
		m.List[i] = v
		return m
	}
	m.Keys, m.List = append(m.Keys, key), append(m.List, v)
	return m
}

// join joins contents, of which empty ones do not count: texts with sep between, else lists of parts.
func join(sep string, contents ...jsonval.Value) jsonval.Value {
	var full []jsonval.Value
	for _, v := range contents {
		if v.True() {
			full = append(full, v)
		}
	}
	switch len(full) {
	case 0:
		if v := contents[len(contents)-1]; v.Kind != jsonval.Undefined {
			return v
		}
		return jsonval.Value{Kind: jsonval.Null}
	case 1:
		return full[0]
	}
	n := 0 // texts at the beginning are one text
	var b strings.Builder
	for ; n < len(full) && full[n].Kind == jsonval.String; n++ {
		if n > 0 {
			b.WriteString(sep)
		}
		b.WriteString(full[n].Str)
	}
	if n == len(full) {
		return str(b.String())
	}
	var list []jsonval.Value
	if n > 0 {
		list = parts(str(b.String()))
	}
	for _, v := range full[n:] {
		list = append(list, parts(v)...)
	}
	return jsonval.Value{Kind: jsonval.Array, List: list}
}

// parts returns a content as a list.
func parts(v jsonval.Value) []jsonval.Value {
	if v.Kind == jsonval.Array {
		return v.List
	}
	return []jsonval.Value{{Kind: jsonval.Object, Keys: []string{"type", "text"}, List: []jsonval.Value{str("text"), v}}}
}

// plain returns the text of a content; parts without text are left out.
func plain(v jsonval.Value) string {
	switch v.Kind {
	case jsonval.String:
		return v.Str
	case jsonval.Array:
		var texts []string
		for _, p := range v.List {
			if t := p.Get("text"); t.Kind == jsonval.String {
				texts = append(texts, t.Str)
			} else if p.Kind == jsonval.String {
				texts = append(texts, p.Str)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}
