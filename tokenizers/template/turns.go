// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// callTurn is a message as the native renderers read it. Nothing in it is trusted.
type callTurn struct {
	v                        jsonval.Value // the message itself, for keys of one format only
	role, path               string
	content, contentPath     string
	reasoning, reasoningPath string // the path is empty if the message has no reasoning, not even an empty one
	calls                    []call
	call                     *call // of a result, where a format looks it up
	place                    int   // of that call among its message's
}

// call is one tool call of an assistant's message.
type call struct {
	id             string
	name, namePath string
	args           jsonval.Value // the arguments; a string of JSON is read already
	raw            string        // the arguments as the request wrote them, if that was a string
	isRaw          bool
	valid          bool // args holds the value, because the arguments were not a string or were a string of JSON
	argsPath       string
	v              jsonval.Value // the function, or the call itself if it has none
}

// parseTurns reads the messages, whose roles must be among roles. The caller must not modify the turns.
func parseTurns(in *input, roles ...string) ([]*callTurn, error) {
	n := 0
	var list []jsonval.Value
	var slab []callTurn
	if in.turns != nil {
		n = len(in.turns.messages)
	} else {
		var err error
		if list, err = in.messageList(); err != nil {
			return nil, err
		}
		n = len(list)
		slab = make([]callTurn, n)
	}
	if n == 0 {
		return nil, &Error{path: "messages", reason: "is empty"}
	}
	turns := make([]*callTurn, n)
	var args jsonval.Builder
	for i := range turns {
		var v jsonval.Value
		if in.turns != nil {
			if turns[i] = in.turnsBefore.at(i, in.turns); turns[i] != nil {
				continue
			}
			v = in.turns.messages[i].Value
			turns[i] = new(callTurn) // the next rendering may keep it, and not the others
		} else {
			v, turns[i] = list[i], &slab[i]
		}
		t := turns[i]
		var err error
		t.v = v
		t.path, t.contentPath = elementPath("messages", i, ".content")
		role := v.Get("role")
		t.role = role.Str
		if role.Kind != jsonval.String || !slices.Contains(roles, t.role) {
			last := len(roles) - 1
			return nil, &Error{path: t.path + ".role",
				reason: fmt.Sprintf("is %q, not %s or %s", role.Text(), strings.Join(roles[:last], ", "), roles[last])}
		}
		switch c := v.Get("content"); {
		case t.role == "tool" && c.Kind != jsonval.Null && c.Kind != jsonval.Undefined && c.Kind != jsonval.String && c.Kind != jsonval.Array:
			t.content = string(c.AppendJSON(nil)) // a tool may return any value
		default:
			if t.content, err = contentText(c, t.contentPath); err != nil {
				return nil, err
			}
		}
		if t.role != "assistant" {
			continue
		}
		for _, key := range []string{"reasoning_content", "reasoning", "thinking"} {
			switch r := v.Get(key); r.Kind {
			case jsonval.String:
				if t.reasoning == "" {
					t.reasoning, t.reasoningPath = r.Str, t.path+"."+key
				}
			case jsonval.Null, jsonval.Undefined:
			default:
				return nil, &Error{path: t.path + "." + key, reason: "is not a string"}
			}
		}
		if t.calls, err = parseCalls(v.Get("tool_calls"), t.path+".tool_calls", &args); err != nil {
			return nil, err
		}
	}
	if in.turns != nil {
		in.turns.turns = turns
	}
	return turns, nil
}

// elementPath returns the path of an element of a list, and of a member of the element.
func elementPath(list string, i int, member string) (element, path string) {
	path = list + "[" + strconv.Itoa(i) + "]" + member
	return path[:len(path)-len(member)], path
}

func parseCalls(v jsonval.Value, path string, b *jsonval.Builder) ([]call, error) {
	if !v.True() {
		return nil, nil
	}
	if v.Kind != jsonval.Array {
		return nil, &Error{path: path, reason: "is not an array"}
	}
	calls := make([]call, len(v.List))
	for i, x := range v.List {
		c := &calls[i]
		member := ""
		c.id = x.Get("id").Str
		if f := x.Get("function"); f.True() {
			x = f
			member = ".function"
		}
		c.v = x
		_, c.namePath = elementPath(path, i, member+".name")
		_, c.argsPath = elementPath(path, i, member+".arguments")
		name := x.Get("name")
		if name.Kind != jsonval.String {
			return nil, &Error{path: c.namePath, reason: "is not a string"}
		}
		c.name = name.Str
		c.args = x.Get("arguments")
		c.valid = true
		switch c.args.Kind {
		case jsonval.String:
			c.raw, c.isRaw = c.args.Str, true
			switch args, err := b.ParseString(c.args, c.argsPath); {
			case err == nil:
				c.args = args
			case strings.TrimSpace(c.raw) == "":
				c.args = jsonval.Value{Kind: jsonval.Object}
			default:
				c.valid = false
			}
		case jsonval.Undefined, jsonval.Null:
			c.args = jsonval.Value{Kind: jsonval.Object}
		}
	}
	return calls, nil
}

// parseRequest reads what every native renderer needs.
func parseRequest(req *input, roles ...string) (turns []*callTurn, tools []jsonval.Value, kwargs jsonval.Value, err error) {
	if err := req.checkOpen(); err != nil {
		return nil, nil, kwargs, err
	}
	if turns, err = parseTurns(req, roles...); err != nil {
		return nil, nil, kwargs, err
	}
	if tools, err = req.toolList(); err != nil {
		return nil, nil, kwargs, err
	}
	if kwargs, err = parseObject(req.Kwargs, "kwargs"); err != nil {
		return nil, nil, kwargs, err
	}
	if last := turns[len(turns)-1]; req.ContinueFinalMessage != "" && len(last.calls) > 0 {
		return nil, nil, kwargs, &Error{path: last.path, reason: "cannot be continued: it has tool calls"}
	}
	return turns, tools, kwargs, nil
}

// copied returns copies of turns, which the caller may modify.
func copied(turns []*callTurn) []callTurn {
	out := make([]callTurn, len(turns))
	for i, t := range turns {
		out[i] = *t
	}
	return out
}

// kwargBool returns a boolean of the kwargs, def if it is absent, null or of another type.
func kwargBool(kwargs jsonval.Value, key string, def bool) bool {
	if v := kwargs.Get(key); v.Kind == jsonval.Bool {
		return v.Bool
	}
	return def
}
