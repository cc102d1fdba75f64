// SPDX-License-Identifier: Apache-2.0

package serve

import (
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
	aString  = fieldType{"a string", func(raw []byte) bool { return raw[0] == '"' }}
	aBoolean = fieldType{"true or false", func(raw []byte) bool { return raw[0] == 't' || raw[0] == 'f' }}
	anObject = fieldType{"an object", func(raw []byte) bool { return raw[0] == '{' }}
)

// stateTypes lists, per API, the types of the fields that specify what a request continues and what becomes of its response. The
// gateway handles them itself, whatever the engines are.
var stateTypes = map[block.API]map[string]fieldType{
	block.Responses: {"previous_response_id": aString, "store": aBoolean, "background": aBoolean},
	block.Messages:  {"thread": anObject},
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
