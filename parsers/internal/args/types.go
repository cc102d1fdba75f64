// SPDX-License-Identifier: Apache-2.0

package args

import (
	"encoding/json"
	"strings"
)

// Types is a set of JSON types.
type Types uint8

// The JSON types. Integer is a number without a fraction; a schema that permits all numbers has Number and Integer.
const (
	String Types = 1 << iota
	Number
	Integer
	Boolean
	Object
	Array
	Null

	// Any is every type: the schema has no constraint.
	Any = String | Number | Integer | Boolean | Object | Array | Null
)

// named maps a type name to types. Besides JSON Schema's names it takes those that tool authors write by habit: the
// ones of Dynamo (parsers/v2, arguments/schema) and vLLM (rust/src/tool-parser/src/parameters.rs). Other names are
// ignored.
func named(name string) Types {
	switch name {
	case "string":
		return String
	case "integer":
		return Integer
	case "number":
		return Number | Integer
	}
	n := strings.ToLower(strings.TrimSpace(name))
	switch {
	case n == "null" || n == "none":
		return Null
	case n == "object" || n == "map" || strings.HasPrefix(n, "dict"):
		return Object
	case n == "array" || n == "arr" || n == "sequence" || strings.HasPrefix(n, "list"):
		return Array
	case n == "boolean" || n == "bool" || n == "binary":
		return Boolean
	case strings.HasPrefix(n, "int"), strings.HasPrefix(n, "uint"), strings.HasPrefix(n, "long"),
		strings.HasPrefix(n, "short"), strings.HasPrefix(n, "unsigned"):
		return Integer
	case strings.HasPrefix(n, "num"), strings.HasPrefix(n, "float"), n == "double", n == "decimal":
		return Number | Integer
	case n == "string" || n == "str" || n == "text" || n == "varchar" || n == "char" || n == "enum":
		return String
	}
	return Any
}

// kindOf returns the types that v, a value of an enum or const, belongs to.
func kindOf(v any) Types {
	switch v := v.(type) {
	case nil:
		return Null
	case bool:
		return Boolean
	case string:
		return String
	case json.Number:
		whole, frac, _ := strings.Cut(v.String(), ".")
		if strings.ContainsAny(whole, "eE") || strings.Trim(frac, "0") != "" {
			return Number
		}
		return Number | Integer
	case map[string]any:
		return Object
	case []any:
		return Array
	}
	return Any
}
