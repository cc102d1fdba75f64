// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// foreign lists the fields of engines and our own, none of which is passed on from the client.
var foreign = [][]string{
	{weftMember}, {"nvext"}, {"priority"}, {"cache_salt"}, {"extra_key"}, {"session_id"}, {"request_id"}, {"rid"}, {"session_params"},
	{"thinking_token_budget"}, {"routed_dp_rank"}, {"data_parallel_rank"}, {"disagg_prefill_dp_rank"},
}

// dropped returns the fields of a body that o replaces: foreign, and the fields of the target's API.
func (o *Out) dropped() [][]string {
	switch o.kind {
	case dynamo:
		return slices.Concat(slices.DeleteFunc(slices.Clone(foreign), func(p []string) bool { return p[0] == "nvext" }), dynamoMembers)
	case openAI:
		return slices.Concat(foreign, openAIMembers)
	case anthropic:
		return slices.Concat(foreign, anthropicMembers)
	}
	return foreign
}

// foreignHeaders lists the headers that carry hints from clients, and those by which the parts of a router specify an
// endpoint or a model, which would let a client choose one. Names that end in a dash are prefixes.
var foreignHeaders = []string{
	"x-dynamo-", "x-llm-d-", "x-gateway-", "x-slo-ttft-ms", "x-slo-tpot-ms",
	"x-prefiller-", "x-encoder-hosts-ports", "x-data-parallel-host-port", "x-kv-cache-source-host-port", "x-session-token",
	"x-tenant-id", "x-worker-instance-id", "x-prefill-instance-id", "x-dp-rank", "x-data-parallel-rank", "x-prefill-dp-rank",
	"x-smg-", "x-request-id", "x-client-request-id", "x-claude-code-", "x-codex-", "x-deepseek-harness-", "session-id",
	"thread-id", "session_id", "x-session-id", "x-session-affinity", "x-parent-session-id", "x-openai-subagent",
}

// SetHeaders sets the headers of o in h, an http.Header of a request to the target. It deletes the client's headers
// that contain hints in any dialect, name its session, or specify an endpoint or a model for a router. It does not
// change other headers.
func (o *Out) SetHeaders(h map[string][]string) {
	for name := range h {
		low := strings.ToLower(name)
		if slices.ContainsFunc(foreignHeaders, func(f string) bool {
			return low == f || strings.HasSuffix(f, "-") && strings.HasPrefix(low, f)
		}) || slices.ContainsFunc(weftFields, func(f weftField) bool { return low == weftHeaderOf(f.hint) }) {
			delete(h, name)
		}
	}
	for _, x := range o.headers {
		h[canonical(x.name)] = []string{x.value}
	}
}

// canonical returns the canonical form of a name in lower case, as in net/http.
func canonical(name string) string {
	b := []byte(name)
	up := true
	for i, c := range b {
		if up && 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		up = c == '-'
	}
	return string(b)
}

// AppendBody appends body, a JSON object, to dst and adds the fields of o. Hints in body are left out if they are in
// our own dialect or in the dialect of an engine or of the target's API; everything else is copied byte for byte. So a
// gateway can complete its own body, and a proxy can replace the hints of its client. AppendBody returns an error for
// syntax errors that it notices, but does not validate body. dst and body must not overlap. Cost: one pass over body.
func (o *Out) AppendBody(dst, body []byte) ([]byte, error) {
	var root edit
	if string(body) != "{}" { // which has nothing to drop
		for _, path := range o.dropped() {
			root.at(path).drop = true
		}
	}
	for _, m := range o.members {
		root.at(m.path).set = m.json
	}
	return root.apply(dst, body, 0)
}

// edit specifies the change to a value.
type edit struct {
	drop  bool   // remove the old value
	set   []byte // insert this value
	name  string
	inner []*edit // edits of fields, in order
}

func (e *edit) at(path []string) *edit {
	for _, name := range path {
		i := slices.IndexFunc(e.inner, func(m *edit) bool { return m.name == name })
		if i < 0 {
			i = len(e.inner)
			e.inner = append(e.inner, &edit{name: name})
		}
		e = e.inner[i]
	}
	return e
}

// adds reports whether the edit inserts something.
func (e *edit) adds() bool { return e.set != nil || slices.ContainsFunc(e.inner, (*edit).adds) }

// append appends the inserted value.
func (e *edit) append(dst []byte) []byte {
	if e.set != nil {
		return append(dst, e.set...)
	}
	dst = append(dst, '{')
	dst, _ = e.appendRest(dst, nil, true)
	return append(dst, '}')
}

// appendRest appends the fields that are not in done.
func (e *edit) appendRest(dst []byte, done map[*edit]bool, first bool) ([]byte, bool) {
	for _, m := range e.inner {
		if done[m] || !m.adds() {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, m.name), ':')
		dst = m.append(dst)
	}
	return dst, first
}

var errBody = errors.New("intent: append body: not a valid JSON object")

// apply appends obj with its fields edited. off is the offset of obj in the body.
func (e *edit) apply(dst, obj []byte, off int) ([]byte, error) {
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return dst, errBody
	}
	bad := func(at int) error { return fmt.Errorf("%w: at byte %d", errBody, off+at) }
	i++
	dst = append(dst, obj[:i]...)
	done := map[*edit]bool{}
	first := true
	for from := i; ; from = i {
		k := space(obj, i)
		if k < len(obj) && obj[k] == '}' {
			dst, _ = e.appendRest(dst, done, first)
			return append(dst, obj[from:]...), nil
		}
		keyEnd := skip(obj, k)
		if keyEnd < 0 || obj[k] != '"' {
			return dst, bad(k)
		}
		colon := space(obj, keyEnd)
		if colon >= len(obj) || obj[colon] != ':' {
			return dst, bad(colon)
		}
		v := space(obj, colon+1)
		end := skip(obj, v)
		if end < 0 {
			return dst, bad(v)
		}
		m := e.member(obj[k:keyEnd])
		do := keepValue
		if m != nil {
			do = m.action(obj[v:end], done[m])
			done[m] = true
		}
		if do != dropValue {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, obj[from:v]...)
		}
		switch do {
		case keepValue:
			dst = append(dst, obj[v:end]...)
		case newValue:
			dst = m.append(dst)
		case editValue:
			var err error
			if dst, err = m.apply(dst, obj[v:end], off+v); err != nil {
				return dst, err
			}
		}
		i = end
		switch next := space(obj, end); {
		case next < len(obj) && obj[next] == ',':
			i = next + 1
		case next >= len(obj) || obj[next] != '}':
			return dst, bad(next)
		}
	}
}

// The actions on the value of a field.
const (
	keepValue = iota
	dropValue
	newValue
	editValue
)

// action returns the action on a value that is present. again reports that the field occurred before; repeated fields
// are dropped.
func (e *edit) action(v []byte, again bool) int {
	object := v[0] == '{'
	switch {
	case again:
		return dropValue
	case e.set != nil, e.adds() && (e.drop || !object):
		return newValue
	case e.drop && (object || e.name != weftMember): // the field agent belongs to our dialect only if it is an object
		return dropValue
	case object && len(e.inner) > 0:
		return editValue
	}
	return keepValue
}

// member returns the edit of the field with the given raw key, or nil.
func (e *edit) member(key []byte) *edit {
	name := string(key[1 : len(key)-1])
	if strings.Contains(name, `\`) && json.Unmarshal(key, &name) != nil {
		return nil
	}
	for _, m := range e.inner {
		if m.name == name {
			return m
		}
	}
	return nil
}

// space returns the index of the first byte from i on that is not white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the JSON value at i, or -1 if the value is incomplete. It does not validate the value.
func skip(b []byte, i int) int {
	start, depth := i, 0
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i++; i > len(b) {
				return -1
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				if i == start {
					return -1
				}
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				if i == start || c == ':' {
					return -1
				}
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}
