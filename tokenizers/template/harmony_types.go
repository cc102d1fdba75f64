// SPDX-License-Identifier: Apache-2.0

package template

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// This file prints JSON schemas as the TypeScript that harmony lists functions in. What comes out of a
// schema is a value of the request; only the words any, object, string, number, boolean, null and the
// punctuation are the template's.

// function prints the type of one function.
func (s *harmonyState) function(tool jsonval.Value, path string) error {
	name := tool.Get("name")
	if name.Kind != jsonval.String {
		return &Error{path: path + ".name", reason: "is not a string"}
	}
	switch d := tool.Get("description"); d.Kind {
	case jsonval.String:
		s.comment(d.Str, path+".description")
	case jsonval.Undefined, jsonval.Null:
	default:
		return &Error{path: path + ".description", reason: "is not a string"}
	}
	s.lit("type ")
	s.val(name.Str, path+".name", kindTools)
	params := tool.Get("parameters")
	path += ".parameters"
	switch {
	case s.library && params.Kind != jsonval.Undefined && params.Kind != jsonval.Null:
		s.lit(" = (_: ")
		s.libraryType(params, path, "")
		s.lit(") => any;\n\n")
		return nil
	case s.library || len(object(params.Get("properties")).List) == 0:
		s.lit(" = () => any;\n\n")
		return nil
	}
	s.lit(" = (_: {\n")
	props := params.Get("properties")
	required := listed(params.Get("required"))
	for i, p := range props.List {
		key := props.Keys[i]
		at := path + ".properties." + key
		if d := p.Get("description"); d.True() {
			s.lit("// ")
			s.val(d.Text(), at+".description", kindTools)
			s.lit("\n")
		}
		s.val(key, at, kindTools)
		if !required(key) {
			s.lit("?")
		}
		s.lit(": ")
		s.templateType(p, at)
		if def := p.Get("default"); def.Kind != jsonval.Undefined {
			switch {
			case p.Get("enum").True():
				s.lit(", // default: ")
				s.val(def.Text(), at+".default", kindTools)
			case p.Get("oneOf").True():
				s.lit("// default: ")
				s.val(def.Text(), at+".default", kindTools)
			default:
				s.lit(", // default: ")
				s.val(string(def.AppendJSON(nil)), at+".default", kindTools)
			}
		}
		s.lit(",\n")
	}
	s.lit("}) => any;\n\n")
	return nil
}

// comment prints a description: as the template does, one comment whatever the text holds, or as the library
// does, one for each line.
func (s *harmonyState) comment(text, path string) {
	if !s.library {
		s.lit("// ")
		s.val(text, path, kindTools)
		s.lit("\n")
		return
	}
	for line := range lines(text) {
		s.lit("// ")
		s.val(line, path, kindTools)
		s.lit("\n")
	}
}

// lines yields the lines of s without their ends, as Rust's str::lines does.
func lines(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for s != "" {
			line, rest, found := strings.Cut(s, "\n")
			if found {
				line = strings.TrimSuffix(line, "\r")
			}
			if !yield(line) {
				return
			}
			s = rest
		}
	}
}

// object returns v if it is an object, otherwise an empty value.
func object(v jsonval.Value) jsonval.Value {
	if v.Kind != jsonval.Object {
		return jsonval.Value{}
	}
	return v
}

// listed returns a test for being a string of list.
func listed(list jsonval.Value) func(string) bool {
	if list.Kind != jsonval.Array {
		return func(string) bool { return false }
	}
	set := make(map[string]bool, len(list.List))
	for _, v := range list.List {
		if v.Kind == jsonval.String {
			set[v.Str] = true
		}
	}
	return func(s string) bool { return set[s] }
}

// templateType prints a type as the macro of the template does, odd line breaks inside objects and unions
// included: the model was given those.
func (s *harmonyState) templateType(p jsonval.Value, path string) {
	typ := p.Get("type")
	null := func() {
		if p.Get("nullable").True() {
			s.lit(" | null")
		}
	}
	switch {
	case typ.Kind == jsonval.String && typ.Str == "array":
		items := p.Get("items")
		if !items.True() {
			s.lit("any[]")
			null()
			return
		}
		n := len(s.text)
		segs, spans := len(s.segs), len(s.spans)
		end := 0
		if segs > 0 {
			end = s.segs[segs-1].end
		}
		switch items.Get("type").Str {
		case "string", "boolean":
			s.lit(items.Get("type").Str)
		case "number", "integer":
			s.lit("number")
		default:
			s.templateType(items, path+".items")
			// A long type is not printed after all.
			if inner := s.text[n:]; string(inner) == "object | object" || utf8.RuneCount(inner) > 50 {
				s.text, s.segs, s.spans = s.text[:n], s.segs[:segs], s.spans[:spans]
				if segs > 0 {
					s.segs[segs-1].end = end
				}
				s.lit("any")
			}
		}
		s.lit("[]")
		null()
	case typ.Kind == jsonval.Array && len(typ.List) > 0:
		for i, t := range typ.List {
			if i > 0 {
				s.lit(" | ")
			}
			s.val(t.Text(), fmt.Sprintf("%s.type[%d]", path, i), kindTools)
		}
	case p.Get("oneOf").True():
		variants := p.Get("oneOf").List
		for i, v := range variants {
			at := fmt.Sprintf("%s.oneOf[%d]", path, i)
			s.templateType(v, at)
			if d := v.Get("description"); d.True() {
				s.lit("// ")
				s.val(d.Text(), at+".description", kindTools)
			}
			if d := v.Get("default"); d.Kind != jsonval.Undefined {
				s.lit("                    // default: ")
				s.val(string(d.AppendJSON(nil)), at+".default", kindTools)
			}
			if i < len(variants)-1 {
				s.lit(" | \n")
			}
		}
	case typ.Kind != jsonval.String:
		s.lit("any")
	default:
		switch typ.Str {
		case "string":
			if e := p.Get("enum"); e.True() {
				s.lit("\"")
				for i, v := range e.List {
					if i > 0 {
						s.lit("\" | \"")
					}
					s.val(v.Text(), fmt.Sprintf("%s.enum[%d]", path, i), kindTools)
				}
				s.lit("\"")
				return
			}
			s.lit("string")
			null()
		case "number", "integer":
			s.lit("number")
		case "boolean":
			s.lit("boolean")
		case "object":
			props := object(p.Get("properties"))
			if len(props.List) == 0 {
				s.lit("object")
				return
			}
			s.lit("{\n")
			required := listed(p.Get("required"))
			for i, v := range props.List {
				if i > 0 {
					s.lit(", ")
				}
				key := props.Keys[i]
				at := path + ".properties." + key
				s.val(key, at, kindTools)
				if !required(key) {
					s.lit("?")
				}
				s.lit(": \n                ")
				s.templateType(v, at)
			}
			s.lit("}")
		default:
			s.lit("any")
		}
	}
}

// libraryType prints a type as json_schema_to_typescript of openai/harmony does. Its lines begin with indent.
func (s *harmonyState) libraryType(p jsonval.Value, path, indent string) {
	if one := p.Get("oneOf"); one.Kind == jsonval.Array {
		for i, v := range one.List {
			s.lit("\n" + indent + " | ")
			at := fmt.Sprintf("%s.oneOf[%d]", path, i)
			s.nullable(v, at, indent+"   ")
			sep := " // "
			if d := v.Get("description"); d.Kind == jsonval.String {
				s.lit(sep)
				s.val(d.Str, at+".description", kindTools)
				sep = " "
			}
			if d := v.Get("default"); d.Kind != jsonval.Undefined {
				s.lit(sep + "default: ")
				if d.Kind == jsonval.String && isEnum(v) {
					s.val(quoteJSON(d), at+".default", kindTools)
				} else {
					s.libraryDefault(v, d, at)
				}
			}
		}
		return
	}
	typ := p.Get("type")
	if typ.Kind == jsonval.Array {
		n := 0
		for i, t := range typ.List {
			if t.Kind != jsonval.String {
				continue
			}
			if n > 0 {
				s.lit(" | ")
			}
			n++
			if t.Str == "integer" {
				s.lit("number")
			} else {
				s.val(t.Str, fmt.Sprintf("%s.type[%d]", path, i), kindTools)
			}
		}
		if n == 0 {
			s.lit("any")
		}
		return
	}
	switch typ.Str {
	case "object":
		s.libraryObject(p, path, indent)
	case "string":
		n := 0
		for i, v := range p.Get("enum").List {
			if v.Kind != jsonval.String {
				continue
			}
			if n > 0 {
				s.lit(" | ")
			}
			n++
			s.lit("\"")
			s.val(v.Str, fmt.Sprintf("%s.enum[%d]", path, i), kindTools)
			s.lit("\"")
		}
		if n == 0 {
			s.lit("string")
		}
	case "number", "integer":
		s.lit("number")
	case "boolean":
		s.lit("boolean")
	case "array":
		if items := p.Get("items"); items.Kind != jsonval.Undefined {
			s.libraryType(items, path+".items", indent)
			s.lit("[]")
		} else {
			s.lit("Array<any>")
		}
	default:
		s.lit("any")
	}
}

func isEnum(p jsonval.Value) bool {
	e := p.Get("enum")
	return e.Kind == jsonval.Array && len(e.List) > 0
}

func quoteJSON(v jsonval.Value) string { return string(compactJSON(nil, v)) }

// libraryDefault prints a default: a string of an enumeration bare, any other in quotes, and not escaped.
func (s *harmonyState) libraryDefault(p, def jsonval.Value, path string) {
	switch {
	case def.Kind == jsonval.String && isEnum(p):
		s.val(def.Str, path+".default", kindTools)
	case def.Kind == jsonval.String:
		s.lit("\"")
		s.val(def.Str, path+".default", kindTools)
		s.lit("\"")
	default:
		s.val(string(compactJSON(nil, def)), path+".default", kindTools)
	}
}

// nullable prints a type, and adds null if the schema is nullable and the type does not include null.
func (s *harmonyState) nullable(p jsonval.Value, path, indent string) {
	n := len(s.text)
	s.libraryType(p, path, indent)
	if v := p.Get("nullable"); v.Kind == jsonval.Bool && v.Bool && !bytes.Contains(s.text[n:], []byte("null")) {
		s.lit(" | null")
	}
}

func (s *harmonyState) libraryObject(p jsonval.Value, path, indent string) {
	note := func(v jsonval.Value, path string) {
		if v.Kind == jsonval.String {
			s.lit(indent + "// ")
			s.val(v.Str, path, kindTools)
			s.lit("\n")
		}
	}
	note(p.Get("description"), path+".description")
	s.lit("{\n")
	props := object(p.Get("properties"))
	required := listed(p.Get("required"))
	for i, v := range props.List {
		key := props.Keys[i]
		at := path + ".properties." + key
		if t := v.Get("title"); t.Kind == jsonval.String {
			note(t, at+".title")
			s.lit(indent + "//\n")
		}
		one := v.Get("oneOf")
		if one.Kind == jsonval.Undefined {
			note(v.Get("description"), at+".description")
		}
		if ex := v.Get("examples"); ex.Kind == jsonval.Array && len(ex.List) > 0 {
			s.lit(indent + "// Examples:\n")
			for j, e := range ex.List {
				if e.Kind == jsonval.String {
					s.lit(indent + "// - \"")
					s.val(e.Str, fmt.Sprintf("%s.examples[%d]", at, j), kindTools)
					s.lit("\"\n")
				}
			}
		}
		mark := "?"
		if required(key) {
			mark = ""
		}
		def := v.Get("default")
		if one.Kind == jsonval.Array {
			s.libraryUnion(v, one, key, mark, at, indent)
			continue
		}
		s.lit(indent)
		s.val(key, at, kindTools)
		s.lit(mark + ": ")
		s.nullable(v, at, indent+"    ")
		s.lit(",")
		if one.Kind == jsonval.Undefined && def.Kind != jsonval.Undefined {
			s.lit(" // default: ")
			s.libraryDefault(v, def, at)
		}
		s.lit("\n")
	}
	s.lit(indent + "}")
}

// libraryUnion prints a property with variants, each on a line.
func (s *harmonyState) libraryUnion(p, one jsonval.Value, key, mark, path, indent string) {
	desc := p.Get("description")
	above := desc.Kind == jsonval.String
	if above && len(one.List) > 0 {
		if d := one.List[0].Get("description"); d.Kind == jsonval.String && d.Str == desc.Str {
			above = false
		}
	}
	if above {
		s.lit(indent + "// ")
		s.val(desc.Str, path+".description", kindTools)
		s.lit("\n")
	}
	if def := p.Get("default"); def.Kind != jsonval.Undefined {
		s.lit(indent + "// default: ")
		s.libraryDefault(p, def, path)
		s.lit("\n")
	}
	s.lit(indent)
	s.val(key, path, kindTools)
	s.lit(mark + ":\n")
	for i, v := range one.List {
		at := fmt.Sprintf("%s.oneOf[%d]", path, i)
		s.lit(indent + " | ")
		s.nullable(v, at, indent+"   ")
		sep := " // "
		d := v.Get("description")
		if d.Kind == jsonval.String && !(i == 0 && above) && !(desc.Kind == jsonval.String && d.Str == desc.Str) {
			s.lit(sep)
			s.val(d.Str, at+".description", kindTools)
			sep = " "
		}
		if def := v.Get("default"); def.Kind != jsonval.Undefined {
			s.lit(sep + "default: ")
			s.libraryDefault(v, def, at)
		}
		s.lit("\n")
	}
	s.lit(indent + ",\n")
}

// compactJSON appends v as serde_json prints it: without spaces, and with integers beyond 64 bits as floats.
func compactJSON(dst []byte, v jsonval.Value) []byte {
	switch v.Kind {
	case jsonval.Array:
		dst = append(dst, '[')
		for i, x := range v.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = compactJSON(dst, x)
		}
		return append(dst, ']')
	case jsonval.Object:
		dst = append(dst, '{')
		for i, x := range v.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonval.Value{Kind: jsonval.String, Str: v.Keys[i]}.AppendJSON(dst)
			dst = append(dst, ':')
			dst = compactJSON(dst, x)
		}
		return append(dst, '}')
	case jsonval.Int:
		_, errSigned := strconv.ParseInt(v.Str, 10, 64)
		_, errUnsigned := strconv.ParseUint(v.Str, 10, 64)
		if errSigned == nil || errUnsigned == nil {
			return append(dst, v.Str...)
		}
		return appendFloat(dst, v.Str)
	case jsonval.Float:
		return appendFloat(dst, v.Str)
	}
	return v.AppendJSON(dst)
}

// appendFloat appends a number, given as Python prints it, as serde_json 1.0.149 prints the float that it reads: 1.0,
// 1e-6, 1.5e+16. Earlier versions, and with them openai-harmony 0.0.8, omit the plus.
func appendFloat(dst []byte, number string) []byte {
	f := serdeFloat(number)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, number...) // the library refuses it
	}
	if size := math.Abs(f); size != 0 && (size < 1e-5 || size >= 1e16) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		dst = append(append(dst, mantissa...), 'e', exponent[0])
		return append(dst, strings.TrimLeft(exponent[1:], "0")...)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !bytes.Contains(dst[n:], []byte(".")) {
		dst = append(dst, ".0"...)
	}
	return dst
}

// serdeFloat reads a number as serde_json does by default, which is not always the nearest float: the digits that fit
// into 64 bits, times or divided by a power of ten.
func serdeFloat(number string) float64 {
	digits, exponent, _ := strings.Cut(strings.TrimPrefix(number, "-"), "e")
	exp, _ := strconv.Atoi(exponent) // 0 if empty
	whole, fraction, _ := strings.Cut(digits, ".")
	var n uint64
	full := false
	for i, c := range []byte(whole + fraction) {
		digit := uint64(c - '0')
		if full = full || n > (math.MaxUint64-digit)/10; !full {
			n = n*10 + digit
		}
		switch {
		case full && i < len(whole):
			exp++
		case !full && i >= len(whole):
			exp--
		}
	}
	f := float64(n)
	for ; exp < -308 && f != 0; exp += 308 {
		f /= 1e308
	}
	switch {
	case exp > 308 && f != 0:
		f = math.Inf(1)
	case exp >= 0:
		f *= math.Pow10(min(exp, 308))
	default:
		f /= math.Pow10(min(-exp, 308))
	}
	if strings.HasPrefix(number, "-") {
		f = -f
	}
	return f
}

// The tools the model was trained with, as both styles print them.
const (
	harmonyBrowser = "## browser\n\n" +
		"// Tool for browsing.\n" +
		"// The `cursor` appears in brackets before each browsing display: `[{cursor}]`.\n" +
		"// Cite information from the tool using the following format:\n" +
		"// `【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.\n" +
		"// Do not quote more than 10 words directly from the tool output.\n" +
		"// sources=web (default: web)\n" +
		"namespace browser {\n\n" +
		"// Searches for information related to `query` and displays `topn` results.\n" +
		"type search = (_: {\nquery: string,\ntopn?: number, // default: 10\nsource?: string,\n}) => any;\n\n" +
		"// Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, showing `num_lines` lines.\n" +
		"// Valid link ids are displayed with the formatting: `【{id}†.*】`.\n" +
		"// If `cursor` is not provided, the most recent page is implied.\n" +
		"// If `id` is a string, it is treated as a fully qualified URL associated with `source`.\n" +
		"// If `loc` is not provided, the viewport will be positioned at the beginning of the document or centered on the most relevant passage, if available.\n" +
		"// Use this function without `id` to scroll to a new location of an opened page.\n" +
		"type open = (_: {\nid?: number | string, // default: -1\ncursor?: number, // default: -1\nloc?: number, // default: -1\n" +
		"num_lines?: number, // default: -1\nview_source?: boolean, // default: false\nsource?: string,\n}) => any;\n\n" +
		"// Finds exact matches of `pattern` in the current page, or the page given by `cursor`.\n" +
		"type find = (_: {\npattern: string,\ncursor?: number, // default: -1\n}) => any;\n\n" +
		"} // namespace browser\n\n"
	harmonyPython = "## python\n\n" +
		"Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. This tool should be used for internal reasoning, but not for code that is intended to be visible to the user (e.g. when creating plots, tables, or files).\n\n" +
		"When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook environment. python will respond with the output of the execution or time out after 120.0 seconds. The drive at '/mnt/data' can be used to save and persist user files. Internet access for this session is UNKNOWN. Depends on the cluster.\n\n"
)
