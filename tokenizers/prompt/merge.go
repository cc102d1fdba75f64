// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// This file merges the schemas that hold for one value, so that the rest only has to read schemas without references to
// and combinations of others.

// maxAlternatives is the number of alternatives that a schema may have.
const maxAlternatives = 64

// keywords has the keywords of a schema without references to and combinations of other schemas. const is written as enum.
type keywords map[string]json.RawMessage

// joining are the keywords that name other schemas for the same value.
var joining = []string{"$ref", "allOf", "anyOf", "oneOf"}

// merged returns the alternatives of a schema: a value that one of them permits is permitted by the schema. The
// alternatives of oneOf are treated like the ones of anyOf.
func (g *gbnf) merged(schema json.RawMessage) ([]keywords, error) {
	switch text := string(bytes.TrimSpace(schema)); text {
	case "", "true":
		return []keywords{{}}, nil
	case "false":
		return nil, nil
	}
	if g.depth++; g.depth > maxGBNFDepth {
		return nil, fmt.Errorf("it is nested too deep, or refers to itself")
	}
	defer func() { g.depth-- }()
	if g.work += len(schema); g.work > maxGBNFWork {
		return nil, fmt.Errorf("it is too large")
	}
	var own keywords
	var joined struct {
		Ref                 string `json:"$ref"`
		AllOf, AnyOf, OneOf []json.RawMessage
	}
	if err := json.Unmarshal(schema, &own); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(schema, &joined); err != nil {
		return nil, err
	}
	for _, k := range joining {
		delete(own, k)
	}
	if raw, ok := own["const"]; ok {
		delete(own, "const")
		list := []keywords{own, {"enum": slices.Concat([]byte("["), raw, []byte("]"))}}
		both, ok := list[0].with(list[1])
		if !ok {
			return nil, nil
		}
		own = both
	}
	all := [][]json.RawMessage{joined.AnyOf, joined.OneOf}
	for _, part := range joined.AllOf {
		all = append(all, []json.RawMessage{part})
	}
	if joined.Ref != "" {
		target := g.lookup(joined.Ref)
		if target == nil {
			return nil, fmt.Errorf("the reference %q leads nowhere", joined.Ref)
		}
		all = append(all, []json.RawMessage{target})
	}
	list := []keywords{own}
	for _, parts := range all {
		if len(parts) == 0 {
			continue
		}
		var next []keywords
		for _, part := range parts {
			more, err := g.merged(part)
			if err != nil {
				return nil, err
			}
			for _, a := range list {
				for _, b := range more {
					if both, ok := a.with(b); ok {
						next = append(next, both)
					}
				}
			}
			if len(next) > maxAlternatives {
				return nil, fmt.Errorf("it has more than %d alternatives", maxAlternatives)
			}
		}
		list = next
	}
	return list, nil
}

// with returns the keywords that permit what both permit. It returns false if that is evidently nothing. Of two values
// of a keyword that cannot be merged, it has the first.
func (k keywords) with(other keywords) (keywords, bool) {
	out := maps.Clone(k)
	if out == nil {
		out = keywords{}
	}
	for name, b := range other {
		a, ok := k[name]
		if !ok || bytes.Equal(a, b) {
			out[name] = b
			continue
		}
		switch name {
		case "type":
			var types []string
			for _, t := range typesIn(a) {
				switch {
				case slices.Contains(typesIn(b), t), t == "integer" && slices.Contains(typesIn(b), "number"):
					types = append(types, t)
				case t == "number" && slices.Contains(typesIn(b), "integer"):
					types = append(types, "integer")
				}
			}
			if len(types) == 0 {
				return nil, false
			}
			out[name] = marshal(types)
		case "enum":
			both := make(map[string]bool)
			for _, v := range listOf(b) {
				both[canonical(v)] = true
			}
			keep := slices.DeleteFunc(listOf(a), func(v json.RawMessage) bool { return !both[canonical(v)] })
			if len(keep) == 0 {
				return nil, false
			}
			out[name] = marshal(keep)
		case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
			if numeric(b) > numeric(a) {
				out[name] = b
			}
		case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
			if numeric(b) < numeric(a) {
				out[name] = b
			}
		case "required":
			list, seen := listOf(a), make(map[string]bool)
			for _, v := range list {
				seen[canonical(v)] = true
			}
			for _, v := range listOf(b) {
				if key := canonical(v); !seen[key] {
					seen[key] = true
					list = append(list, v)
				}
			}
			out[name] = marshal(list)
		case "properties", "patternProperties":
			names, values, err := members(a)
			if err != nil {
				break
			}
			more, schemas, _ := members(b)
			places := make(map[string]int, len(names))
			for i, name := range names {
				places[name] = i
			}
			for i, name := range more {
				if at, ok := places[name]; ok {
					values[at] = bothSchemas(values[at], schemas[i])
				} else {
					places[name] = len(names)
					names, values = append(names, name), append(values, schemas[i])
				}
			}
			out[name] = object(names, values)
		case "items", "additionalProperties":
			out[name] = bothSchemas(a, b)
		case "uniqueItems":
			out[name] = json.RawMessage("true")
		case "pattern":
			out[name] = marshal(append(patternsIn(a), patternsIn(b)...)) // an array, which only valueForm reads
		}
	}
	k.close(other, out)
	other.close(k, out)
	return out, true
}

// close removes the properties from out that other declares and k does not permit.
func (k keywords) close(other, out keywords) {
	if string(bytes.TrimSpace(k["additionalProperties"])) != "false" || other["properties"] == nil || k["patternProperties"] != nil {
		return
	}
	own, _, _ := members(k["properties"])
	names, values, err := members(out["properties"])
	if err != nil {
		return
	}
	permitted := make(map[string]bool, len(own))
	for _, name := range own {
		permitted[name] = true
	}
	n := 0
	for i, name := range names {
		if permitted[name] {
			names[n], values[n] = name, values[i]
			n++
		}
	}
	out["properties"] = object(names[:n], values[:n])
}

// bothSchemas returns the schema of values for which two hold.
func bothSchemas(a, b json.RawMessage) json.RawMessage {
	switch x, y := string(bytes.TrimSpace(a)), string(bytes.TrimSpace(b)); {
	case x == y, y == "true", y == "{}", x == "false":
		return a
	case x == "true", x == "{}", y == "false":
		return b
	}
	return slices.Concat([]byte(`{"allOf":[`), a, []byte(","), b, []byte("]}"))
}

// typesIn returns the types that the keyword type names.
func typesIn(raw json.RawMessage) (types []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	json.Unmarshal(raw, &types)
	return types
}

// patternsIn returns the regular expressions of the keyword pattern, of which merged schemas can have several.
func patternsIn(raw json.RawMessage) (patterns []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil && len(raw) > 0 {
		return []string{one}
	}
	json.Unmarshal(raw, &patterns)
	return patterns
}

func listOf(raw json.RawMessage) (list []json.RawMessage) {
	json.Unmarshal(raw, &list)
	return list
}

func numeric(raw json.RawMessage) (f float64) {
	json.Unmarshal(raw, &f)
	return f
}

// canonical returns a text that is the same for values that only differ in the order of members, white space and the
// notation of numbers and strings.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return fmt.Sprintf("%#v", v)
}

// marshal returns a value of strings or schemas in JSON.
func marshal(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// schema returns the keywords as a schema.
func (k keywords) schema() json.RawMessage {
	names := slices.Sorted(maps.Keys(k))
	var values []json.RawMessage
	for _, name := range names {
		value := k[name]
		if name == "pattern" && len(value) > 0 && value[0] == '[' { // of several, engines enforce one
			value = listOf(value)[0]
		}
		values = append(values, value)
	}
	return object(names, values)
}

// types returns the types of the values that the keywords permit.
func (k keywords) types() []string {
	if types := typesIn(k["type"]); len(types) > 0 {
		return types
	}
	return []string{"object", "array", "string", "number", "boolean", "null"}
}

// of returns the keywords for values of some types.
func (k keywords) of(types []string) keywords {
	out := maps.Clone(k)
	out["type"] = marshal(types)
	if len(types) == 1 {
		out["type"] = marshal(types[0])
	}
	return out
}

// kindOf returns the type of a value.
func kindOf(value json.RawMessage) string {
	switch value = bytes.TrimSpace(value); {
	case len(value) == 0:
		return ""
	case value[0] == '"':
		return "string"
	case value[0] == '{':
		return "object"
	case value[0] == '[':
		return "array"
	case value[0] == 't' || value[0] == 'f':
		return "boolean"
	case value[0] == 'n':
		return "null"
	case strings.ContainsAny(string(value), ".eE"):
		return "number"
	}
	return "integer"
}

// rewritten finds the keywords for which a schema may have to be rewritten.
var rewritten = regexp.MustCompile(`"(allOf|anyOf|oneOf|\$ref|required|pattern|patternProperties)"`)

// maxInlined is the number of merged schemas inside each other up to which they are merged.
const maxInlined = 4

// plainSchema returns a schema that permits the same without what xgrammar does not enforce, or the schema itself if
// it has nothing of that: allOf of several schemas, which permits any value there, references to and combinations of
// schemas together with other keywords, of which one or the other is left out, and required properties that are not
// declared. Regular expressions, which have to match the whole text there, get what may be around a match.
func plainSchema(schema json.RawMessage) json.RawMessage {
	g := gbnf{schema: schema, parts: make(map[string]part)}
	out, changed := g.plain(schema, 0)
	if !changed {
		return schema
	}
	names, values, err := members(out)
	if err != nil {
		return schema
	}
	for _, name := range []string{"$defs", "definitions"} { // references lead there
		var defs map[string]json.RawMessage
		if json.Unmarshal(schema, &defs) != nil || defs[name] == nil || slices.Contains(names, name) {
			continue
		}
		value, _ := g.plainMembers(defs[name], 0)
		names, values = append(names, name), append(values, value)
	}
	if g.work > maxGBNFWork {
		return schema
	}
	return object(names, values)
}

// plain is plainSchema for a part of the schema inside some merged ones.
func (g *gbnf) plain(schema json.RawMessage, inlined int) (out json.RawMessage, changed bool) {
	g.work += len(schema)
	if g.work > maxGBNFWork || !rewritten.Match(schema) {
		return schema, false
	}
	names, values, err := members(schema)
	if err != nil {
		return schema, false
	}
	s := make(keywords, len(names))
	for i, name := range names {
		s[name] = values[i]
	}
	if s.combined() && inlined < maxInlined {
		list, err := g.merged(schema)
		if err != nil || len(list) == 0 {
			return schema, false
		}
		var alternatives []json.RawMessage
		for _, k := range list {
			for _, name := range []string{"$defs", "definitions", "$schema", "$id"} {
				delete(k, name)
			}
			part, _ := g.plain(k.schema(), inlined+1)
			alternatives = append(alternatives, part)
		}
		if len(alternatives) == 1 {
			return alternatives[0], true
		}
		return object([]string{"anyOf"}, []json.RawMessage{marshal(alternatives)}), true
	}
	for i, name := range names {
		var same bool
		switch name {
		case "properties", "patternProperties", "$defs", "definitions":
			values[i], same = g.plainMembers(values[i], inlined)
			if patterns, schemas, err := members(values[i]); name == "patternProperties" && err == nil {
				for j, p := range patterns {
					patterns[j] = anchored(p)
					same = same || patterns[j] != p
				}
				values[i] = object(patterns, schemas)
			}
		case "pattern":
			if p := patternsIn(values[i]); len(p) > 0 && anchored(p[0]) != p[0] {
				values[i], same = quoteJSON(anchored(p[0])), true
			}
		case "items", "additionalProperties", "additionalItems", "contains", "not":
			values[i], same = g.plain(values[i], inlined)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list := listOf(values[i])
			for j := range list {
				part, other := g.plain(list[j], inlined)
				list[j], same = part, same || other
			}
			if same {
				values[i] = marshal(list)
			}
		}
		changed = changed || same
	}
	if missing := s.missing(); len(missing) > 0 {
		at := slices.Index(names, "properties")
		if at < 0 {
			at = len(names)
			names, values = append(names, "properties"), append(values, json.RawMessage("{}"))
		}
		props, schemas, _ := members(values[at])
		for _, name := range missing {
			part, _ := g.plain(s.undeclared(name), inlined)
			props, schemas = append(props, name), append(schemas, part)
		}
		values[at], changed = object(props, schemas), true
	}
	if !changed {
		return schema, false
	}
	return object(names, values), true
}

// plainMembers is plain for each member of an object.
func (g *gbnf) plainMembers(raw json.RawMessage, inlined int) (out json.RawMessage, changed bool) {
	names, values, err := members(raw)
	if err != nil {
		return raw, false
	}
	for i := range values {
		part, other := g.plain(values[i], inlined)
		values[i], changed = part, changed || other
	}
	if !changed {
		return raw, false
	}
	return object(names, values), true
}

// combined reports whether the schema names others for the same value in a way that has to be merged.
func (k keywords) combined() bool {
	n := 0
	for _, name := range joining {
		if k[name] != nil {
			n++
		}
	}
	switch {
	case n == 0:
		return false
	case n > 1 || len(listOf(k["allOf"])) > 1:
		return true
	}
	return k["type"] != nil || slices.ContainsFunc(asserting, func(name string) bool { return k[name] != nil && !slices.Contains(joining, name) })
}

// maxMissing is the number of required properties without a declaration up to which a schema gets one for them.
const maxMissing = 256

// missing returns the required properties of objects that are not declared and can be.
func (k keywords) missing() (names []string) {
	if k["required"] == nil || !slices.Contains(k.types(), "object") {
		return nil
	}
	var required []string
	json.Unmarshal(k["required"], &required)
	declared, _, err := members(k["properties"])
	known := make(map[string]bool, len(declared))
	for _, name := range declared {
		known[name] = true
	}
	for _, name := range required {
		if err != nil || known[name] {
			continue
		}
		if len(names) == maxMissing {
			return nil
		}
		if known[name] = true; string(bytes.TrimSpace(k.undeclared(name))) != "false" {
			names = append(names, name)
		}
	}
	return names
}

// anchored returns a regular expression that matches whole texts in which the given one finds something, or that one if it
// does already or cannot be read.
func anchored(pattern string) string {
	re, err := parseRegex(pattern)
	if err != nil {
		return pattern
	}
	first, last := re, re
	if re.Op == syntax.OpConcat {
		first, last = re.Sub[0], re.Sub[len(re.Sub)-1]
	}
	const any = `[\s\S]*`
	switch start, end := first.Op == syntax.OpBeginText, last.Op == syntax.OpEndText; {
	case start && end:
		return pattern
	case start:
		return pattern + any + "$"
	case end:
		return "^" + any + pattern
	}
	return "^" + any + "(?:" + pattern + ")" + any + "$"
}
