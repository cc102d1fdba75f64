// SPDX-License-Identifier: Apache-2.0

// Package args turns the raw text of an argument into JSON, guided by the JSON Schema of the tool, for argument
// syntaxes in which a value does not determine its own type:
//
//	<parameter=days>3</parameter>      {"days":3}    if days is an integer
//	<parameter=days>3</parameter>      {"days":"3"}  if it is a string, or nothing is known of it
//
// # Terms
//
// A [Schema] is a compiled JSON Schema of an arguments object. A [Node] is one value that it describes: the whole
// object, a parameter, a property of a parameter, an element of an array. [Types] is the set of JSON types a value may
// have. A value is declared if the schema constrains it. An undeclared value is a String, because only its text is
// known.
//
// # What is read of a schema
//
//   - type, as a name or a list; besides JSON Schema's names those that tool authors write by habit (str, float, dict…).
//     Without it, properties makes an Object, and items or prefixItems an Array.
//   - enum and const, by the types of their values; nullable, which adds Null.
//   - $ref to a position in the same document (#/$defs/x), percent- and pointer-escapes included. Keywords next to it
//     hold too. Any other reference permits everything.
//   - allOf intersects; anyOf and oneOf unite, including their constraints on the same property. A property that is
//     declared in several places which all hold has the types that all of them permit.
//   - properties, and additionalProperties if it is a schema, for keys that are not declared anywhere; items,
//     prefixItems, additionalItems.
//
// All other keywords are for a validator. A schema that contradicts itself permits everything: the text is taken as it
// comes. One look-up visits at most 1024 schemas, 64 deep, and returns [Any] beyond that, so a schema may refer to
// itself or fan out without end.
//
// # How text becomes a value
//
// [AppendValue] and [Node.AppendValue] have the table. Their output is always valid JSON, and JSON text is kept byte for
// byte: the spelling of numbers and the order of keys are the model's.
//
// # Cost
//
// [Compile] takes time and memory linear in the schema. Look-ups and conversions allocate nothing when dst has room.
// Everything here is immutable and safe for concurrent use.
package args
