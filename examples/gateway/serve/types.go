// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
)

// This file checks the types of fields that the decoder passes on as they are.

// A fieldType is a type of JSON values. null is of every type.
type fieldType struct {
	name string
	has  func(raw []byte) bool // of valid JSON without white space around it
}

var (
	aString     = fieldType{"a string", func(raw []byte) bool { return raw[0] == '"' }}
	aBoolean    = fieldType{"true or false", func(raw []byte) bool { return raw[0] == 't' || raw[0] == 'f' }}
	aNumber     = fieldType{"a number", func(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }}
	anObject    = fieldType{"an object", func(raw []byte) bool { return raw[0] == '{' }}
	aStringList = fieldType{"a list of strings", func(raw []byte) bool { return raw[0] == '[' && onlyStrings(raw) }}
	aStringMap  = fieldType{"an object of strings", func(raw []byte) bool { return raw[0] == '{' && onlyStrings(raw) }}
	aTier       = fieldType{"one of " + strings.Join(tiers, ", "), func(raw []byte) bool {
		return raw[0] == '"' && slices.Contains(tiers, string(raw[1:len(raw)-1]))
	}}
)

// tiers lists the service tiers of the Responses API.
var tiers = []string{"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}

// onlyStrings reports whether all elements of an array, or all values of an object, are strings.
func onlyStrings(raw []byte) bool {
	inside := false // a string
	for i := 1; i < len(raw)-1; i++ {
		switch b := raw[i]; {
		case b == '"':
			inside = !inside
		case b == '\\': // in a string
			i++
		case !inside && strings.IndexByte(" \t\r\n,:", b) < 0:
			return false
		}
	}
	return true
}

// stateTypes lists, per API, the types of the fields that specify what a request continues and whether its response is stored or
// waited for. The gateway handles them itself, whatever the engines are.
var stateTypes = map[block.API]map[string]fieldType{
	block.Responses: {"previous_response_id": aString, "store": aBoolean, "background": aBoolean},
	block.Messages:  {"thread": anObject},
}

// otherTypes lists, per API, the types of fields without which the conversation is the same, but which responses repeat or which are
// ignored if they are of another type. Endpoints of the client's API check them themselves.
var otherTypes = map[block.API]map[string]fieldType{
	block.Chat:        {"user": aString, "logit_bias": anObject},
	block.Completions: {"user": aString, "logit_bias": anObject, "echo": aBoolean},
	block.Responses: {
		"instructions": aString, "include": aStringList, "metadata": aStringMap, "prompt_cache_key": aString, "prompt_cache_retention": aString,
		"safety_identifier": aString, "service_tier": aTier, "user": aString, "truncation": aString, "max_tool_calls": aNumber,
	},
	block.Messages: {"metadata": anObject},
}

// untyped returns an error for the first tool of OpenAI's APIs that has no type, or not the declaration that its type demands. Tools
// of unknown types are only without effect.
func untyped(r *block.Request) error {
	tools := r.Tools()
	for i := range tools {
		switch t := &tools[i]; {
		case r.API() == block.Messages || t.Kind != block.Hosted:
		case t.Type == "":
			return apierr.Invalid(t.At.Path()+".type", "A tool must have a type.")
		case r.API() == block.Chat && t.Type == "function":
			return apierr.Invalid(t.At.Path()+".function", "A tool of the type function must have the field function.")
		}
	}
	return nil
}

// socketTypes lists the types of fields that only messages over WebSocket have.
var socketTypes = map[block.API]map[string]fieldType{block.Responses: {"generate": aBoolean}}

// mistyped returns an error for the first field of a request that is not of its type.
func mistyped(r *block.Request, types map[block.API]map[string]fieldType) error {
	of := types[r.API()]
	if len(of) == 0 {
		return nil
	}
	for name, value := range r.Fields() {
		t, ok := of[name]
		if !ok {
			continue
		}
		if raw := value(); string(raw) != "null" && !t.has(raw) {
			return apierr.Invalid(name, "%s must be %s, not %.40s.", name, t.name, raw)
		}
	}
	return nil
}
