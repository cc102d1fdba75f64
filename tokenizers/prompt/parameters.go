// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// This file writes the format of arguments that a template prints one by one. What a schema permits is read as the parsers
// read it: through references and combinations of schemas.

// The ways in which parameters are written.
const (
	valueText = iota // as it is
	valueJSON
)

// maxDeclared is the number of alternatives that the schema of a tool may have.
const maxDeclared = 64

// declared is the parameters of an object, in the order of its schema.
type declared struct {
	names    []string
	values   []json.RawMessage // schemas
	required []string
}

// with returns the parameters of values for which both schemas hold.
func (p declared) with(other declared) declared {
	out := declared{slices.Clone(p.names), slices.Clone(p.values), slices.Concat(p.required, other.required)}
	for i, name := range other.names {
		at := slices.Index(out.names, name)
		switch {
		case at < 0:
			out.names, out.values = append(out.names, name), append(out.values, other.values[i])
		case !bytes.Equal(out.values[at], other.values[i]):
			out.values[at] = slices.Concat([]byte(`{"allOf":[`), out.values[at], []byte(","), other.values[i], []byte("]}"))
		}
	}
	return out
}

// parameters returns the format of arguments that are written one by one, in the order of the schema: strings as they
// are, and other values as JSON.
func (d *demand) parameters(schema json.RawMessage, tool string) ([]format, error) {
	g := gbnf{schema: schema, parts: make(map[string]part)} // for references
	objects, err := g.declare(schema)
	if err != nil {
		return nil, unforced("tools", fmt.Sprintf("the schema of %s cannot be read: %v", tool, err))
	}
	var list []format
	empty := false
	for _, o := range objects {
		var params []format
		for i, name := range o.names {
			if param := d.parameter(&g, name, o.values[i]); slices.Contains(o.required, name) {
				params = append(params, param...)
			} else {
				params = append(params, optional(param...))
			}
		}
		for _, name := range o.required {
			if !slices.Contains(o.names, name) {
				return nil, unforced("tools", fmt.Sprintf("the tool %s requires %q, which its schema does not declare", tool, name))
			}
		}
		if len(objects) == 1 {
			return params, nil
		}
		if len(params) == 0 {
			empty = true
			continue
		}
		list = append(list, sequence(params...))
	}
	switch {
	case len(list) == 0:
		return nil, nil
	case empty:
		return []format{optional(anyOf(list...))}, nil
	}
	return []format{anyOf(list...)}, nil
}

// parameter returns the format of one argument.
func (d *demand) parameter(g *gbnf, name string, schema json.RawMessage) []format {
	shape, form := d.shape.params, g.form(schema)
	write := func(kind int, value ...format) format {
		return sequence(slices.Concat(d.lits(shape.before+name+shape.sep[kind]), value)...)
	}
	after := d.lits(shape.after)
	var list []format
	switch {
	case form.free:
		list = append(list, write(valueText, d.until(shape.after)...))
	case len(form.texts) > 0:
		var texts []format
		for _, text := range form.texts {
			if text != "" {
				texts = append(texts, format{Type: "const_string", Value: text})
			}
		}
		value := after
		switch {
		case len(texts) == len(form.texts):
			value = slices.Concat([]format{anyOf(texts...)}, after)
		case len(texts) > 0:
			value = slices.Concat([]format{optional(anyOf(texts...))}, after)
		}
		list = append(list, write(valueText, value...))
	}
	for _, s := range form.json {
		list = append(list, write(valueJSON, slices.Concat([]format{{Type: "json_schema", Schema: alone(s, g.schema)}}, after)...))
	}
	out := anyOf(list...)
	if out.Type == "sequence" {
		return out.Elements
	}
	return []format{out}
}

// declare returns the parameters that a schema declares: one set or, if the schema has alternatives, several.
func (g *gbnf) declare(schema json.RawMessage) ([]declared, error) {
	if text := string(bytes.TrimSpace(schema)); text == "true" {
		return []declared{{}}, nil
	}
	if g.depth++; g.depth > maxGBNFDepth {
		return nil, fmt.Errorf("it is nested too deep, or refers to itself")
	}
	defer func() { g.depth-- }()
	if g.work += len(schema); g.work > maxGBNFWork {
		return nil, fmt.Errorf("it is too large")
	}
	var s struct {
		Type                any
		Ref                 string `json:"$ref"`
		Properties          json.RawMessage
		Required            []string
		AllOf, AnyOf, OneOf []json.RawMessage
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	if t, ok := s.Type.(string); ok && t != "object" && g.depth > 1 {
		return nil, nil // an alternative without parameters
	}
	own := declared{required: s.Required}
	var err error
	if own.names, own.values, err = members(s.Properties); err != nil {
		return nil, fmt.Errorf("properties: %w", err)
	}
	all := [][]json.RawMessage{s.AnyOf, s.OneOf}
	for _, part := range s.AllOf {
		all = append(all, []json.RawMessage{part})
	}
	if s.Ref != "" {
		target := g.lookup(s.Ref)
		if target == nil {
			return nil, fmt.Errorf("the reference %q leads nowhere", s.Ref)
		}
		all = append(all, []json.RawMessage{target})
	}
	list := []declared{own}
	for _, parts := range all {
		if len(parts) == 0 {
			continue
		}
		var next []declared
		for _, part := range parts {
			more, err := g.declare(part)
			if err != nil {
				return nil, err
			}
			for _, a := range list {
				for _, b := range more {
					next = append(next, a.with(b))
				}
			}
			if len(next) > maxDeclared {
				return nil, fmt.Errorf("it has more than %d alternatives", maxDeclared)
			}
		}
		list = next
	}
	return list, nil
}

// valueForm specifies the written form of the values of a schema. Values that may be any text are written like texts, as the parser
// reads them.
type valueForm struct {
	free  bool              // as any text
	texts []string          // or as one of these
	json  []json.RawMessage // or as JSON with one of these schemas
}

// form returns the written form of the values of a schema.
func (g *gbnf) form(schema json.RawMessage) valueForm {
	var s struct {
		Type                any
		Enum                []json.RawMessage
		Const               json.RawMessage
		Ref                 string `json:"$ref"`
		AllOf, AnyOf, OneOf []json.RawMessage
	}
	free, whole := valueForm{free: true}, valueForm{json: []json.RawMessage{schema}}
	g.work += len(schema)
	if g.depth++; g.depth > maxGBNFDepth || g.work > maxGBNFWork || json.Unmarshal(schema, &s) != nil {
		g.depth--
		return free
	}
	defer func() { g.depth-- }()
	if s.Const != nil {
		s.Enum = []json.RawMessage{s.Const}
	}
	if len(s.Enum) > 0 {
		out, others := valueForm{}, [][]byte(nil)
		for _, v := range s.Enum {
			var text string
			if v[0] == '"' && json.Unmarshal(v, &text) == nil {
				out.texts = append(out.texts, text)
			} else {
				others = append(others, v)
			}
		}
		if len(out.texts) == 0 {
			return whole
		}
		if len(others) > 0 {
			out.json = []json.RawMessage{slices.Concat([]byte(`{"enum":[`), bytes.Join(others, []byte(",")), []byte("]}"))}
		}
		return out
	}
	switch t := s.Type.(type) {
	case string:
		if t != "string" {
			return whole
		}
	case []any:
		if !slices.Contains(t, any("string")) {
			return whole
		}
	}
	all := [][]json.RawMessage{s.AnyOf, s.OneOf}
	for _, part := range s.AllOf {
		all = append(all, []json.RawMessage{part})
	}
	if target := g.lookup(s.Ref); s.Ref != "" && target != nil {
		all = append(all, []json.RawMessage{target})
	}
	for _, parts := range all {
		var out valueForm
		for _, part := range parts {
			f := g.form(part)
			out = valueForm{out.free || f.free, append(out.texts, f.texts...), append(out.json, f.json...)}
		}
		switch {
		case out.free || len(parts) == 0:
		case len(out.texts) == 0:
			return whole
		default:
			return out
		}
	}
	return free
}

// members returns the members of a JSON object in their order.
func members(raw json.RawMessage) (names []string, values []json.RawMessage, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("not an object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values, nil
}

var (
	references    = regexp.MustCompile(`"\$ref"\s*:\s*"#`)
	toDefinitions = regexp.MustCompile(`"\$ref"\s*:\s*"#/(\$defs|definitions)/`)
)

// alone returns a part of a schema that does not need the rest: with the definitions to which it may refer or, if there are
// references to other parts, with the whole schema as one definition.
func alone(part, schema json.RawMessage) json.RawMessage {
	if !references.Match(part) {
		return part
	}
	var defs struct {
		New json.RawMessage `json:"$defs"`
		Old json.RawMessage `json:"definitions"`
	}
	json.Unmarshal(schema, &defs) // has been read
	for _, text := range [][]byte{part, defs.New, defs.Old} {
		if len(references.FindAll(text, -1)) != len(toDefinitions.FindAll(text, -1)) {
			const moved = `"$$ref":"#/$$defs/root`
			part = references.ReplaceAll(part, []byte(moved))
			defs.New = slices.Concat([]byte(`{"root":`), references.ReplaceAll(schema, []byte(moved)), []byte("}"))
			defs.Old = nil
			break
		}
	}
	names, values, err := members(part)
	if err != nil {
		return part
	}
	if defs.New != nil {
		names, values = append(names, "$defs"), append(values, defs.New)
	}
	if defs.Old != nil {
		names, values = append(names, "definitions"), append(values, defs.Old)
	}
	return object(names, values)
}

// object returns a JSON object.
func object(names []string, values []json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	for i, name := range names {
		key, _ := json.Marshal(name)
		out.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&out, "%s:%s", key, values[i])
	}
	out.WriteByte('}')
	return out.Bytes()
}
