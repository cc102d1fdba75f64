// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file writes the format of arguments that a template prints one by one. What a schema permits is read as the parsers
// read it: through references and combinations of schemas.

// The ways in which parameters are written.
const (
	valueText = iota // as it is
	valueJSON
)

// maxName is the number of characters that the name of an argument can have if the schema does not declare it.
const maxName = 64

// maxNames is the number of properties up to which a schema that requires one of them, whichever, is enforced.
const maxNames = 16

// parameters returns the format of arguments that are written one by one, in the order of the schema: strings as they
// are, and other values as JSON. Those that the schema does not declare come last.
func (d *demand) parameters(schema json.RawMessage, tool string) ([]format, error) {
	g := gbnf{schema: schema, parts: make(map[string]part)} // for references
	objects, err := g.merged(schema)
	if err != nil {
		return nil, unforced("tools", fmt.Sprintf("the schema of %s cannot be read: %v", tool, err))
	}
	var list []format
	var why error
	empty := false
	for _, o := range objects {
		if !slices.Contains(o.types(), "object") {
			continue
		}
		params, err := d.object(&g, o)
		if err != nil {
			why = unforced("tools", fmt.Sprintf("the tool %s %v", tool, err))
			continue
		}
		if len(params) == 0 {
			empty = true
			continue
		}
		list = append(list, sequence(params...))
	}
	switch {
	case len(list) == 0 && !empty && why == nil:
		return nil, unforced("tools", fmt.Sprintf("the schema of %s permits no arguments", tool))
	case len(list) == 0 && !empty:
		return nil, why
	case len(list) == 0:
		return nil, nil
	case empty:
		return []format{optional(anyOf(list...))}, nil
	case len(list) == 1 && list[0].Type == "sequence":
		return list[0].Elements, nil
	}
	return []format{anyOf(list...)}, nil
}

// object returns the format of the parameters of one alternative of a schema. The error continues "the tool x".
func (d *demand) object(g *gbnf, o keywords) ([]format, error) {
	names, values, err := members(o["properties"])
	if err != nil {
		return nil, fmt.Errorf("has properties that cannot be read: %w", err)
	}
	var required []string
	json.Unmarshal(o["required"], &required)
	known, needed := make(map[string]bool), make(map[string]bool)
	for _, name := range names {
		known[name] = true
	}
	for _, name := range required {
		if needed[name] = true; !known[name] {
			known[name] = true
			names, values = append(names, name), append(values, o.undeclared(name))
		}
	}
	var params []format
	var choices [][]format // that can be left out
	count := 0             // of those that cannot
	for i, name := range names {
		var param []format
		if d.reads(name, "x") {
			param = d.parameter(g, []format{{Type: "const_string", Value: name}}, name, values[i])
		}
		switch {
		case needed[name] && param == nil:
			return nil, fmt.Errorf("requires %q, which its schema does not permit or its calls cannot hold", name)
		case needed[name]:
			params = append(params, param...)
			count++
		case param != nil:
			params = append(params, optional(param...))
			choices = append(choices, param)
		}
	}
	least, most := 0, -1
	if raw, ok := o["minProperties"]; ok {
		least = max(0, min(int(numeric(raw)), maxLeast)-count)
	}
	if raw, ok := o["maxProperties"]; ok {
		most = max(0, int(numeric(raw))-count)
		least = min(least, most)
	}
	var others []format
	for _, part := range d.others(o, names) {
		if param := d.parameter(g, part.name, "", part.schema); param != nil {
			others = append(others, sequence(param...))
		}
	}
	var rest []format
	switch {
	case len(others) == 0:
	case len(choices) > 0 || least == 0 && most < 0:
		more := anyOf(others...)
		rest = []format{{Type: "star", Content: &more}}
	case most != 0:
		more := anyOf(others...)
		rest = []format{{Type: "repeat", Content: &more, Min: &least, Max: &most}}
	}
	if least == 1 && count == 0 && len(choices) > 0 && len(choices) <= maxNames { // one of them comes first
		var list []format
		for i := range choices {
			one := slices.Clone(choices[i])
			for _, next := range choices[i+1:] {
				one = append(one, optional(next...))
			}
			list = append(list, sequence(append(one, rest...)...))
		}
		if len(others) > 0 {
			list = append(list, sequence(append([]format{anyOf(others...)}, rest...)...))
		}
		return []format{anyOf(list...)}, nil
	}
	return append(params, rest...), nil
}

// undeclared returns the schema of a property that is not in properties.
func (k keywords) undeclared(name string) json.RawMessage {
	var all []json.RawMessage
	patterns, values, _ := members(k["patternProperties"])
	for i, p := range patterns {
		if re, err := parseRegex(p); err == nil && matches(re, name) {
			all = append(all, values[i])
		}
	}
	switch {
	case len(all) == 0 && k["additionalProperties"] != nil:
		return k["additionalProperties"]
	case len(all) == 0:
		return json.RawMessage("true")
	case len(all) == 1:
		return all[0]
	}
	return slices.Concat([]byte(`{"allOf":`), marshal(all), []byte("}"))
}

// An otherName is the format of names that a schema permits without declaring them.
type otherName struct {
	name   []format
	schema json.RawMessage
}

// nameChars are names that the tags of all families can hold.
const nameChars = "^[^\\x00-\\x20\\x7f-\\xa0\"'`<>=&|｜/\\\\\\[\\]{}(),;:]+$"

// others returns the names that a schema permits besides the given ones. As in xgrammar, other names are permitted only if
// the schema says so, or declares none at all.
func (d *demand) others(o keywords, names []string) (list []otherName) {
	whole, _ := parseRegex(nameChars)
	machines := []machine{newFinder(whole), complement{newOneOf(names)}}
	add := func(schema json.RawMessage, more ...machine) {
		a, ok := product(&d.spent, func(states, wide int) bool { return states+(wideCost-1)*wide > maxTextCost }, append(slices.Clone(machines), more...)...)
		if !ok || a == nil {
			return
		}
		list = append(list, otherName{[]format{{Type: "grammar", Grammar: a.ebnf(fmt.Sprintf("[max_chars=%d]", maxName)), name: a}}, schema})
	}
	patterns, values, _ := members(o["patternProperties"])
	var found []machine
	for _, p := range patterns {
		re, err := parseRegex(p)
		if err != nil {
			return nil
		}
		m := newFinder(re)
		if m == nil {
			return nil
		}
		found = append(found, m)
	}
	for i := range patterns { // names that match several are left out
		more := []machine{found[i]}
		for j, m := range found {
			if j != i {
				more = append(more, complement{m})
			}
		}
		add(values[i], more...)
	}
	further := o["additionalProperties"]
	if further == nil && o["properties"] == nil && len(patterns) == 0 && o["enum"] == nil {
		further = json.RawMessage("true")
	}
	if text := string(bytes.TrimSpace(further)); text != "" && text != "false" {
		var more []machine
		for _, m := range found {
			more = append(more, complement{m})
		}
		add(further, more...)
	}
	return list
}

// parameter returns the format of one argument whose name has a format, or nil if there is no value that it can have. key
// is the name if it is known.
func (d *demand) parameter(g *gbnf, name []format, key string, schema json.RawMessage) []format {
	shape := d.shape.params
	form := d.form(g, schema)
	write := func(kind int, value ...format) format {
		if key != "" {
			return sequence(slices.Concat(d.lits(shape.before+key+shape.sep[kind]), value)...)
		}
		return sequence(slices.Concat(d.lits(shape.before), name, d.lits(shape.sep[kind]), value)...)
	}
	after := d.lits(shape.after)
	var list []format
	for _, rule := range form.texts {
		if value := d.text(rule); value != nil {
			list = append(list, write(valueText, value...))
		}
	}
	if len(form.choices) > 0 {
		var texts []format
		empty := false
		for _, text := range form.choices {
			switch {
			case text == "":
				empty = true
			case d.reads("x", text):
				texts = append(texts, format{Type: "const_string", Value: text})
			}
		}
		switch {
		case len(texts) > 0 && empty:
			list = append(list, write(valueText, slices.Concat([]format{optional(anyOf(texts...))}, after)...))
		case len(texts) > 0:
			list = append(list, write(valueText, slices.Concat([]format{anyOf(texts...)}, after)...))
		case empty:
			list = append(list, write(valueText, after...))
		}
	}
	for _, s := range form.json {
		list = append(list, write(valueJSON, slices.Concat([]format{{Type: "json_schema", Schema: alone(s, g.schema)}}, after)...))
	}
	if len(list) == 0 {
		return nil
	}
	out := anyOf(list...)
	if out.Type == "sequence" {
		return out.Elements
	}
	return []format{out}
}

// maxTried is the number of arguments that the parser is given to read.
const maxTried = 1000

// reads reports whether the parser reads an argument that is written as a text, with its name.
func (d *demand) reads(name, text string) bool {
	if plainName.MatchString(name) && plainText.MatchString(text) && strings.TrimSpace(text) == text {
		return true
	}
	d.tried++
	return d.tried <= maxTried && d.model.readsArgument(d.shape, name, text)
}

// text returns the format of a text that follows a rule, and what comes after it, or nil if there is no such text.
func (d *demand) text(rule textRule) []format {
	end := d.shape.params.after
	if rule.free() {
		return d.until(end)
	}
	list := d.lits(end)
	t := &ruledText{rule: rule}
	for i, f := range list { // texts end at a marker or, if there is none, at the whole end
		switch {
		case f.Type == "token":
			marker, _ := d.model.tok.Token(*f.Token)
			t.words = []string{marker}
		case i == 0:
			t.words = []string{f.Value}
			continue
		default:
			continue
		}
		break
	}
	grammar, ok := t.ebnf(&d.spent)
	if !ok {
		return nil
	}
	return append([]format{{Type: "grammar", Grammar: grammar, text: t}}, list...)
}

// valueForm specifies the written form of the values of a schema. Values that may be any text are written like texts, as the parser
// reads them.
type valueForm struct {
	texts   []textRule        // as a text that follows one of the rules
	choices []string          // or as one of these texts
	json    []json.RawMessage // or as JSON with one of these schemas
}

// What the parsers read as a number or a boolean where it is permitted besides a text.
const (
	numberText  = `^[ \t\r\n]*-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?[ \t\r\n]*$`
	booleanText = `^[ \t\r\n]*(true|True|false|False)[ \t\r\n]*$`
)

// form returns the written form of the values of a schema.
func (d *demand) form(g *gbnf, schema json.RawMessage) valueForm {
	alternatives, err := g.merged(schema)
	if err != nil {
		return valueForm{texts: []textRule{anyText}}
	}
	var out valueForm
	var not []string // texts that would be read as values that no alternative permits
	plain := make(map[string]bool)
	type other struct {
		schema keywords
		types  []string
		plain  bool
	}
	var others []other
	for _, k := range alternatives {
		types := k.types()
		rule := k.textRule()
		if raw, ok := k["enum"]; ok {
			permits := rule.reader()
			var rest []json.RawMessage
			for _, v := range listOf(raw) {
				var text string
				switch kind := kindOf(v); {
				case kind == "string" && json.Unmarshal(v, &text) == nil:
					if slices.Contains(types, kind) && permits(text) {
						out.choices = append(out.choices, text)
					}
				case slices.Contains(types, kind), kind == "integer" && slices.Contains(types, "number"), kind == "number" && slices.Contains(types, "integer"):
					rest = append(rest, v)
				}
			}
			if len(rest) > 0 {
				var kinds []string
				for _, v := range rest {
					kinds = append(kinds, kindOf(v))
				}
				others = append(others, other{keywords{"enum": marshal(rest)}, kinds, false})
			}
			continue
		}
		if slices.Contains(types, "string") {
			out.texts = append(out.texts, rule)
			types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "string" })
		}
		if len(types) > 0 {
			o := other{k.of(types), types, !slices.ContainsFunc(asserting, func(name string) bool {
				return k[name] != nil && name != "minLength" && name != "maxLength" && name != "pattern"
			})}
			if o.plain {
				for _, t := range types {
					plain[t] = true
				}
			}
			others = append(others, o)
		}
	}
	if len(out.texts) == 0 && len(out.choices) == 0 {
		if len(alternatives) == 0 {
			return valueForm{}
		}
		return valueForm{json: []json.RawMessage{schema}}
	}
	free := slices.ContainsFunc(out.texts, textRule.free)
	if free {
		out.texts, out.choices = []textRule{anyText}, nil
	}
	typed := d.shape.params.sep[valueText] != d.shape.params.sep[valueJSON]
	for _, o := range others {
		if !typed && !o.plain {
			for _, t := range o.types {
				switch {
				case (t == "number" || t == "integer") && !plain["number"] && !plain["integer"]:
					not = append(not, numberText)
				case t == "boolean" && !plain["boolean"]:
					not = append(not, booleanText)
				}
			}
		}
		if typed || !free || !o.plain {
			out.json = append(out.json, o.schema.schema())
		}
	}
	slices.Sort(not)
	not = slices.Compact(not)
	for i := range out.texts {
		out.texts[i].not = strings.Join(not, "|")
	}
	return out
}

// textRule returns what the keywords demand of a text.
func (k keywords) textRule() textRule {
	r := anyText
	r.least = int(max(0, min(numeric(k["minLength"]), 1<<30)))
	if raw, ok := k["maxLength"]; ok {
		r.most = int(max(0, min(numeric(raw), 1<<30)))
	}
	r.patterns = patternsIn(k["pattern"])
	var format string
	json.Unmarshal(k["format"], &format)
	if formats[format] != "" {
		r.patterns = append(r.patterns, "^("+formats[format]+")$")
	}
	return r
}

// reader returns a function that reports whether a text follows the rule.
func (r textRule) reader() func(text string) bool {
	machines, _, least, most := r.machines()
	return func(text string) bool {
		n := utf8.RuneCountInString(text)
		return n >= least && (most < 0 || n <= most) && !slices.ContainsFunc(machines, func(m machine) bool { return !reads(m, text) })
	}
}

// reads reports whether an automaton accepts a text.
func reads(m machine, text string) bool {
	at := m.start()
	for _, c := range text {
		if at = m.step(at, c); at < 0 {
			return false
		}
	}
	return m.accepts(at)
}

// matches reports whether a regular expression finds something in a text.
func matches(re *syntax.Regexp, text string) bool {
	m := newFinder(re)
	return m != nil && reads(m, text)
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
	out.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(name)
		fmt.Fprintf(&out, "%s:%s", key, values[i])
	}
	out.WriteByte('}')
	return out.Bytes()
}
