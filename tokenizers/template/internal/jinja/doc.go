// SPDX-License-Identifier: Apache-2.0

// Package jinja compiles and renders chat templates: the language of Jinja2 3.1.6 as Hugging Face
// transformers 4.5x and 5.x set it up (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop
// controls, generation tags, tojson without HTML escapes, raise_exception, strftime_now), with Python's values.
//
// # Terms
//
// A [Template] is compiled once, immutable, and rendered from [Var] values. Every string, and every number
// out of a request, knows its [Origin]: nil if the template wrote it, else a position in the request. A string
// made of several is a list of runs with one origin each, through every filter, method and operator.
// Where a filter cannot tell which byte comes from where, the whole result is attributed to the request.
//
//	source ─ lexer ─▶ tokens ─ parser ─▶ tree ─ render(vars) ─▶ Output{Text, Segs, Generations}
//
// # Fidelity
//
// Values print, compare, sort, slice and format as in Python 3: integers of any size, repr of floats, dicts in
// order of insertion, characters rather than bytes, str methods with Unicode's special cases, generators that
// can be read once, undefined values that print as nothing and fail when used, Markup that escapes what is
// added to it. Where Python raises, rendering fails. Unsupported constructs are errors that name them: template
// inheritance and imports, autoescape, sets, complex numbers, the filters pprint, random, urlize, wordwrap and
// xmlattr, the methods encode, translate and casefold, printing what Python prints as an address. The tag do,
// which transformers does not turn on, works. Unicode tables are Go's (15), Python 3.11 has 14.
//
// # Limits
//
// A render is bounded in text, steps and depth; past a limit it ends with an [Error] that has Limit set.
// Templates and requests never cause a panic, whatever they contain.
//
// This package is structured as follows: lex.go and parse.go make the tree, eval.go has its nodes and runs
// them, ops.go the operators, attr.go and strs.go attributes and methods, filters.go and tests.go those,
// format.go the two formatting languages, json.go JSON in and out, template.go the entry points. Errors
// travel inside as panics with *Error and are returned by Compile and Render.
package jinja
