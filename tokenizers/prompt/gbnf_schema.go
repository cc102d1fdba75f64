// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// This file writes JSON schemas in GBNF. Objects have their members in the order of the schema, and no others unless the
// schema declares none; so what the grammar permits is part of what the schema permits.

const (
	maxGBNFDepth = 64
	// maxRepeat is the number of repetitions beyond which llama.cpp takes none or any number.
	maxRepeat = 2000
	// maxDisjoint is the number of schemas in oneOf that are compared with each other.
	maxDisjoint = 256
)

// jsonSpace is the white space in JSON.
const jsonSpace = `("" | " " | "\n" [ \t]{0,16})`

// unenforced are the keywords that a grammar cannot enforce.
var unenforced = []string{
	"not", "if", "then", "else", "contains", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames", "patternProperties",
	"unevaluatedProperties", "unevaluatedItems", "minProperties", "maxProperties", "$dynamicRef", "$recursiveRef",
}

// asserting are the keywords that a schema with $ref, allOf, anyOf or oneOf must not have besides it.
var asserting = []string{
	"enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "uniqueItems",
	"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "$ref", "allOf", "anyOf", "oneOf",
}

func quoteJSON(text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.Encode(text) // cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// jsonSchema writes a whole schema.
func (g *gbnf) jsonSchema(schema json.RawMessage) (string, error) {
	outer, id, parts := g.schema, g.id, g.parts
	defer func() { g.schema, g.id, g.parts = outer, id, parts }()
	if _, ok := g.ids[string(schema)]; !ok {
		g.ids[string(schema)] = len(g.ids)
	}
	g.schema, g.id, g.parts = schema, g.ids[string(schema)], make(map[string]part)
	return g.value(schema)
}

// value writes a schema or a part of one.
func (g *gbnf) value(schema json.RawMessage) (string, error) {
	if g.depth++; g.depth > maxGBNFDepth {
		return "", inexpressible("schemas nested this deep")
	}
	defer func() { g.depth-- }()
	if err := g.spend(len(schema)); err != nil {
		return "", err
	}
	switch text := string(bytes.TrimSpace(schema)); text {
	case "", "true", "{}":
		return g.anyValue(), nil
	case "false":
		return "", inexpressible("values for the schema false")
	}
	var s map[string]json.RawMessage
	if err := json.Unmarshal(schema, &s); err != nil {
		return "", unforced("", fmt.Sprintf("a schema cannot be read: %v", err))
	}
	for _, k := range unenforced {
		if _, ok := s[k]; ok {
			return "", inexpressible("equivalent of %s in a schema", k)
		}
	}
	for _, k := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		raw, ok := s[k]
		if !ok {
			continue
		}
		for _, other := range asserting {
			if _, ok := s[other]; ok && other != k {
				return "", inexpressible("equivalent of %s with %s in a schema", k, other)
			}
		}
		if k == "$ref" {
			return g.reference(raw)
		}
		return g.alternatives(k, raw)
	}
	if raw, ok := s["const"]; ok {
		return g.constants([]json.RawMessage{raw})
	}
	if raw, ok := s["enum"]; ok {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return "", unforced("", "an enum in a schema is no list of values")
		}
		return g.constants(list)
	}
	types := typesOf(s)
	if string(s["nullable"]) == "true" && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	var list []string
	for _, t := range types {
		e, err := g.typed(t, s)
		if err != nil {
			return "", err
		}
		list = append(list, e)
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return g.rule(strings.Join(list, " | ")), nil
}

// typesOf returns the types of a schema: those that it names, or those that its keywords are for, or all.
func typesOf(s map[string]json.RawMessage) (types []string) {
	var one string
	if json.Unmarshal(s["type"], &one) == nil && one != "" {
		return []string{one}
	}
	if json.Unmarshal(s["type"], &types) == nil && len(types) > 0 {
		return types
	}
	for _, k := range [][]string{
		{"object", "properties", "required", "additionalProperties"}, {"array", "items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
		{"string", "minLength", "maxLength", "pattern", "format"}, {"number", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	} {
		if slices.ContainsFunc(k[1:], func(name string) bool { return s[name] != nil }) {
			types = append(types, k[0])
		}
	}
	if types == nil {
		types = []string{"object", "array", "string", "number", "boolean", "null"}
	}
	return types
}

// constants writes values.
func (g *gbnf) constants(list []json.RawMessage) (string, error) {
	const each = 8 // bytes of quotes, separators and slices, about
	if err := g.spend(each * len(list)); err != nil {
		return "", err
	}
	var out []string
	for _, raw := range list {
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return "", unforced("", fmt.Sprintf("a value in a schema cannot be read: %v", err))
		}
		out = append(out, literal(b.String()))
	}
	return g.rule(strings.Join(out, " | ")), nil
}

// alternatives writes allOf, anyOf or oneOf.
func (g *gbnf) alternatives(keyword string, raw json.RawMessage) (string, error) {
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return "", unforced("", keyword+" in a schema is no list of schemas")
	}
	switch {
	case len(parts) == 1:
		return g.value(parts[0])
	case keyword == "allOf":
		return "", inexpressible("equivalent of allOf with several schemas")
	case keyword == "oneOf" && !g.disjoint(parts):
		return "", inexpressible("equivalent of oneOf with schemas that may have values in common: use anyOf")
	}
	var list []string
	for _, p := range parts {
		e, err := g.value(p)
		if err != nil {
			return "", err
		}
		list = append(list, e)
	}
	return g.rule(strings.Join(list, " | ")), nil
}

// disjoint reports whether schemas evidently have no value in common: their types differ, or a required property of all has
// different constants. Of many schemas it is not evident.
func (g *gbnf) disjoint(parts []json.RawMessage) bool {
	if len(parts) > maxDisjoint {
		return false
	}
	type part struct {
		types []string
		tags  map[string]string
	}
	var all []part
	for _, raw := range parts {
		for range maxGBNFDepth {
			var ref struct {
				Ref string `json:"$ref"`
			}
			if json.Unmarshal(raw, &ref) != nil || ref.Ref == "" {
				break
			}
			raw = g.lookup(ref.Ref)
		}
		var s map[string]json.RawMessage
		if json.Unmarshal(raw, &s) != nil {
			return false
		}
		p := part{types: typesOf(s), tags: map[string]string{}}
		var properties map[string]struct {
			Const json.RawMessage
			Enum  []json.RawMessage
		}
		var required []string
		json.Unmarshal(s["properties"], &properties)
		json.Unmarshal(s["required"], &required)
		for _, name := range required {
			if v := properties[name]; len(v.Const) > 0 {
				p.tags[name] = string(v.Const)
			} else if len(v.Enum) == 1 {
				p.tags[name] = string(v.Enum[0])
			}
		}
		if raw := s["const"]; len(raw) > 0 {
			p.tags[""] = string(raw)
		}
		all = append(all, p)
	}
	for i, a := range all {
		for _, b := range all[:i] {
			same := slices.ContainsFunc(a.types, func(t string) bool {
				return slices.Contains(b.types, t) || t == "integer" && slices.Contains(b.types, "number") || t == "number" && slices.Contains(b.types, "integer")
			})
			for name, tag := range a.tags {
				if other, ok := b.tags[name]; ok && other != tag {
					same = false
				}
			}
			if same {
				return false
			}
		}
	}
	return true
}

// lookup returns the schema that a reference names, or nil.
func (g *gbnf) lookup(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' {
		return nil
	}
	at := json.RawMessage(g.schema)
	for i := 0; i < len(path); {
		from := i + 1
		if i = strings.IndexByte(path[from:], '/') + from; i < from {
			i = len(path)
		}
		p, ok := g.parts[path[:from]]
		if !ok {
			if json.Unmarshal(at, &p.members) != nil {
				json.Unmarshal(at, &p.list)
			}
			g.work += len(at)
			g.parts[path[:from]] = p
		}
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[from:i])
		at = p.members[name]
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(p.list) {
			at = p.list[n]
		}
	}
	return at
}

// A part of a schema is an object or a list.
type part struct {
	members map[string]json.RawMessage
	list    []json.RawMessage
}

// A reference is one in a schema.
type reference struct {
	ref string
	id  int // of the schema
}

// reference writes the schema that a reference names. It may be recursive.
func (g *gbnf) reference(raw json.RawMessage) (string, error) {
	var ref string
	json.Unmarshal(raw, &ref)
	target := g.lookup(ref)
	if target == nil {
		return "", unforced("", fmt.Sprintf("the reference %q leads nowhere in its schema", ref))
	}
	key := reference{ref, g.id}
	if name, ok := g.refs[key]; ok {
		return name, nil
	}
	name := g.name()
	g.refs[key] = name
	depth := g.depth
	g.depth = 0
	expr, err := g.value(target)
	g.depth = depth
	if err != nil {
		return "", err
	}
	if expr == name {
		return "", unforced("", fmt.Sprintf("the reference %q refers to itself", ref))
	}
	g.define(name, expr)
	return name, nil
}

// anyValue returns the rule for any value.
func (g *gbnf) anyValue() string {
	const key = "\x00value"
	if name, ok := g.names[key]; ok {
		return name
	}
	name := g.name()
	g.names[key] = name
	g.define(name, strings.Join([]string{
		g.object(name), g.array(name, 0, -1), g.string(), g.rule(numbers), `"true"`, `"false"`, `"null"`,
	}, " | "))
	return name
}

const (
	integers = `"-"? ("0" | [1-9] [0-9]{0,15})`
	fraction = `("." [0-9]{1,15})?`
	numbers  = integers + " " + fraction + ` ([eE] [-+]? [0-9]{1,2})?`
)

// string returns the rule for any string.
func (g *gbnf) string() string { return g.rule(`"\"" ` + g.text(stringEnd, stringEnd, g.avoid)) }

// char returns the rule for a character of a string that begins none of the texts to avoid.
func (g *gbnf) char() string {
	return g.rule(class(true, append([]rune{0, 0x1f, '"', '"', '\\', '\\'}, single(g.firsts())...)...) + ` | "\\" ` + escape)
}

// object returns the expression for any object with values of a rule.
func (g *gbnf) object(value string) string {
	space := g.rule(jsonSpace)
	member := g.rule(g.string() + " " + space + ` ":" ` + space + " " + value)
	return g.rule(`"{" ` + space + " " + g.rule(member+" "+g.rule(space+` "," `+space+" "+member)+"*") + "? " + space + ` "}"`)
}

// array returns the expression for an array of values of a rule. max is -1 for any number.
func (g *gbnf) array(value string, least, most int) string {
	space := g.rule(jsonSpace)
	if most == 0 {
		return `"[" ` + space + ` "]"`
	}
	upper := ""
	if most > 0 {
		upper = strconv.Itoa(most - 1)
	}
	list := value + " " + g.rule(space+` "," `+space+" "+value) + fmt.Sprintf("{%d,%s}", max(0, least-1), upper)
	if least == 0 {
		list = g.rule(list) + "?"
	}
	return g.rule(`"[" ` + space + " " + list + " " + space + ` "]"`)
}

// bound returns an integer of a schema, or otherwise -1 if it has none.
func bound(s map[string]json.RawMessage, name string) (int, error) {
	raw, ok := s[name]
	if !ok {
		return -1, nil
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || f < 0 || f != math.Trunc(f) {
		return 0, unforced("", fmt.Sprintf("%s in a schema is %s, which is no count", name, raw))
	}
	if f > maxRepeat {
		return 0, inexpressible("%s of more than %d", name, maxRepeat)
	}
	return int(f), nil
}

// typed writes the values of one type.
func (g *gbnf) typed(kind string, s map[string]json.RawMessage) (string, error) {
	switch kind {
	case "null":
		return `"null"`, nil
	case "boolean":
		return `("true" | "false")`, nil
	case "integer", "number":
		return g.number(kind, s)
	case "string":
		return g.stringType(s)
	case "array":
		return g.arrayType(s)
	case "object":
		return g.objectType(s)
	}
	return "", unforced("", fmt.Sprintf("the type %q in a schema is not known", kind))
}

// formats are the values of format that are enforced. Each permits a part of what its format does.
var formats = map[string]string{
	"date":      fullDate,
	"time":      fullTime,
	"date-time": fullDate + "T" + fullTime,
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"email":     `[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@` + hostName,
	"hostname":  hostName,
	"ipv4":      `((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`,
	"uri":       `[A-Za-z][A-Za-z0-9+.-]*:(//)?([A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})+`,
}

const (
	fullDate = `([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)`
	fullTime = `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
	hostName = `[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*`
)

// stringType writes strings.
func (g *gbnf) stringType(s map[string]json.RawMessage) (string, error) {
	least, err := bound(s, "minLength")
	if err != nil {
		return "", err
	}
	most, err := bound(s, "maxLength")
	if err != nil {
		return "", err
	}
	var pattern, format string
	json.Unmarshal(s["pattern"], &pattern)
	json.Unmarshal(s["format"], &format)
	if pattern == "" && formats[format] != "" {
		pattern = "^(" + formats[format] + ")$"
	}
	switch {
	case pattern != "" && (least > 0 || most >= 0):
		return "", inexpressible("equivalent of pattern or format with minLength or maxLength")
	case pattern != "":
		e, err := g.regex(pattern, true)
		return g.rule(`"\"" ` + e + ` "\""`), err
	case most >= 0 && most < least:
		return "", inexpressible("strings with minLength %d and maxLength %d", least, most)
	case most >= 0:
		return g.rule(fmt.Sprintf(`"\"" %s{%d,%d} "\""`, g.char(), max(0, least), most)), nil
	case least > 0:
		return g.rule(fmt.Sprintf(`"\"" %s{%d} %s`, g.char(), least, g.text(stringEnd, stringEnd, g.avoid))), nil
	}
	return g.string(), nil
}

// arrayType writes arrays.
func (g *gbnf) arrayType(s map[string]json.RawMessage) (string, error) {
	least, err := bound(s, "minItems")
	if err != nil {
		return "", err
	}
	most, err := bound(s, "maxItems")
	if err != nil {
		return "", err
	}
	least = max(0, least)
	if string(s["uniqueItems"]) == "true" && (most < 0 || most > 1) {
		return "", inexpressible("equivalent of uniqueItems in a schema")
	}
	if most >= 0 && most < least {
		return "", inexpressible("arrays with minItems %d and maxItems %d", least, most)
	}
	items := s["items"]
	var front []json.RawMessage
	if raw, ok := s["prefixItems"]; ok {
		if json.Unmarshal(raw, &front) != nil {
			return "", unforced("", "prefixItems in a schema is no list of schemas")
		}
	} else if json.Unmarshal(items, &front) == nil && front != nil { // until 2019-09
		items = s["additionalItems"]
	}
	if len(front) > 0 { // written whole, without more items
		if least > len(front) || most >= 0 && most < len(front) {
			return "", inexpressible("equivalent of prefixItems with other numbers of items")
		}
		var list []string
		for _, f := range front {
			e, err := g.value(f)
			if err != nil {
				return "", err
			}
			list = append(list, e)
		}
		space := g.rule(jsonSpace)
		return g.rule(`"[" ` + space + " " + strings.Join(list, " "+space+` "," `+space+" ") + " " + space + ` "]"`), nil
	}
	if string(items) == "false" {
		most = 0
	}
	if most == 0 {
		return g.array("", 0, 0), nil
	}
	value, err := g.value(items)
	if err != nil {
		return "", err
	}
	return g.array(g.rule(value), least, most), nil
}

// objectType writes objects.
func (g *gbnf) objectType(s map[string]json.RawMessage) (string, error) {
	names, values, err := members(s["properties"])
	if err != nil {
		return "", unforced("", "the properties of a schema cannot be read: "+err.Error())
	}
	var required []string
	json.Unmarshal(s["required"], &required)
	more := s["additionalProperties"]
	known, needed := make(map[string]bool), make(map[string]bool)
	for _, name := range names {
		known[name] = true
	}
	for _, name := range required {
		if needed[name] = true; !known[name] {
			known[name] = true
			names, values = append(names, name), append(values, more) // "" is any value
		}
	}
	if len(names) == 0 && string(more) != "false" {
		value, err := g.value(more)
		if err != nil {
			return "", err
		}
		return g.object(g.rule(value)), nil
	}
	space := g.rule(jsonSpace)
	// first is what the object may be from a member on if none was written before it, and later if one was.
	first, later := `""`, `""`
	for i, name := range slices.Backward(names) {
		value, err := g.value(values[i])
		if err != nil {
			return "", err
		}
		member := g.rule(literal(string(quoteJSON(name))) + " " + space + ` ":" ` + space + " " + value)
		comma := space + ` "," ` + space + " " + member
		alone := member
		if later != `""` {
			alone = member + " " + later
		}
		if needed[name] {
			first = g.rule(alone)
		} else {
			comma = g.rule(comma) + "?"
			first = g.rule(alone + " | " + first)
		}
		if later != `""` {
			comma += " " + later
		}
		later = g.rule(comma)
	}
	return g.rule(`"{" ` + space + " " + first + " " + space + ` "}"`), nil
}

// number writes numbers.
func (g *gbnf) number(kind string, s map[string]json.RawMessage) (string, error) {
	var step float64
	if raw, ok := s["multipleOf"]; ok && (json.Unmarshal(raw, &step) != nil || kind != "integer" || step != 1) {
		return "", inexpressible("equivalent of multipleOf in a schema")
	}
	low, high := math.Inf(-1), math.Inf(1)
	for _, b := range []struct {
		name  string
		lower bool
		by    float64 // for integers
	}{{"minimum", true, 0}, {"exclusiveMinimum", true, 1}, {"maximum", false, 0}, {"exclusiveMaximum", false, 1}} {
		raw, ok := s[b.name]
		if !ok {
			continue
		}
		var limit float64
		if json.Unmarshal(raw, &limit) != nil {
			return "", inexpressible("equivalent of %s: %s in a schema", b.name, raw)
		}
		switch {
		case kind == "number" && (b.by != 0 || limit != math.Trunc(limit)):
			return "", inexpressible("equivalent of %s: %s for numbers with a fraction", b.name, raw)
		case b.lower && b.by != 0:
			limit = math.Floor(limit) + 1
		case b.lower:
			limit = math.Ceil(limit)
		case b.by != 0:
			limit = math.Ceil(limit) - 1
		default:
			limit = math.Floor(limit)
		}
		if b.lower {
			low = max(low, limit)
		} else {
			high = min(high, limit)
		}
	}
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1) && kind == "integer":
		return g.rule(integers), nil
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return g.rule(numbers), nil
	case low > high:
		return "", inexpressible("numbers from %v to %v", low, high)
	case max(low, -1e15) != low && !math.IsInf(low, -1) || min(high, 1e15) != high && !math.IsInf(high, 1):
		return "", inexpressible("bounds of numbers beyond 1e15")
	}
	var list []string
	add := func(sign string, from, to float64) { // both at least 0
		if kind == "integer" || from == to {
			list = append(list, sign+digits(from, to))
			return
		}
		below := digits(from, to-1)
		if math.IsInf(to, 1) {
			below = digits(from, to)
		}
		list = append(list, sign+below+" "+fraction)
		if !math.IsInf(to, 1) {
			list = append(list, sign+digits(to, to))
		}
	}
	if high >= 0 {
		add("", max(low, 0), high)
	}
	if low < 0 {
		add(`"-" `, max(1, -high), -low)
		if kind == "number" && high >= 0 {
			list = append(list, `"-0." [0-9]{1,15}`)
		}
	}
	return g.rule(strings.Join(list, " | ")), nil
}

// digits returns the expression for the integers between two that are at least 0. to may be infinite.
func digits(from, to float64) string {
	a := strconv.FormatFloat(from, 'f', 0, 64)
	var list []string
	if math.IsInf(to, 1) {
		nines := strings.Repeat("9", len(a))
		list = append(list, between(a, nines))
		if len(a) < 16 {
			list = append(list, fmt.Sprintf("[1-9] [0-9]{%d,15}", len(a)))
		}
		return "(" + strings.Join(list, " | ") + ")"
	}
	b := strconv.FormatFloat(to, 'f', 0, 64)
	for n := len(a); n <= len(b); n++ {
		low, high := "1"+strings.Repeat("0", n-1), strings.Repeat("9", n)
		if n == len(a) {
			low = a
		}
		if n == len(b) {
			high = b
		}
		list = append(list, between(low, high))
	}
	return "(" + strings.Join(list, " | ") + ")"
}

// between returns the expression for the integers between two of the same length, with all digits.
func between(a, b string) string {
	if a == b {
		return literal(a)
	}
	rest := len(a) - 1
	any := func(low, high byte) string {
		e := "[" + string(low) + "-" + string(high) + "]"
		if low == high {
			e = literal(string(low))
		}
		if rest > 0 {
			e += fmt.Sprintf(" [0-9]{%d}", rest)
		}
		return e
	}
	least, most := strings.Repeat("0", rest), strings.Repeat("9", rest)
	if a[0] == b[0] {
		return literal(a[:1]) + " " + between(a[1:], b[1:])
	}
	low, high := a[0], b[0]
	var list []string
	if a[1:] != least {
		list = append(list, literal(a[:1])+" "+between(a[1:], most))
		low++
	}
	if b[1:] != most {
		high--
	}
	if low <= high {
		list = append(list, any(low, high))
	}
	if b[1:] != most {
		list = append(list, literal(b[:1])+" "+between(least, b[1:]))
	}
	return "(" + strings.Join(list, " | ") + ")"
}
