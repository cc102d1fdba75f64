// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
)

// This file finds out what a request demands of the output. The texts around calls and their arguments are those that the
// template prints (see callShape), so a constrained model writes what it was trained to write, and the family's parser
// reads it. A demand has one form, a tree of format values, which is written in two notations:
//
//	StructuralTag   as xgrammar, and thus vLLM and SGLang, take it
//	GBNF            as llama.cpp takes it; see gbnf.go

// A Constraint is what a request demands of the output. It is immutable and safe for concurrent use by multiple
// goroutines.
type Constraint struct {
	model *Model
	root  *format
	tag   []byte
}

// Constraint returns what a request, of which p is the prompt, demands of the output, or nil if it demands nothing: calls
// of the tools that tool_choice requires or names; text in the form of response_format, text.format or
// output_config.format, or of vLLM's structured_outputs and guided_ fields. Reasoning before that remains possible.
// Markers are given by token id, because a model can also spell them with other tokens, and the parser takes only the
// tokens for markers. The output for a request of the Completions API, which is not parsed, is only the text in the form
// demanded.
//
// Arguments that the template prints one by one have the order of the schema. The schema holds for texts without quotes
// too, with limits: minLength is enforced up to 32, pattern and format for what can be written as a small automaton, of
// format date, time, date-time, uuid, email, hostname, ipv4 and uri. The first characters of a text with minLength, and a
// text with a pattern, may not contain how the closing tag begins. Names that the schema does not declare are permitted if
// it has additionalProperties or patternProperties, or neither these nor properties; the same name can be written twice, which
// parsers do not read. Names and choices that the parser would not read are not permitted. Schemas in JSON are
// written so that xgrammar enforces all that it can.
//
// If nothing of that is demanded and a tool is strict, the output is free except that a call, once its first marker is
// written, is one of the tools of the request, with arguments in the form of its schema if it is strict.
//
// The error is an *[apierr.Error] of class Invalid: for a tool choice that is not known, for a tool that does not exist, for
// demands that exclude each other, and for a demand that cannot be expressed, such as a required call of a model whose
// template prints none.
func (m *Model) Constraint(req *block.Request, p *Prompt) (*Constraint, error) {
	root, err := (&demand{model: m, req: req, prompt: p.Text}).format()
	if root == nil || err != nil {
		return nil, err
	}
	if root.raw != nil {
		return &Constraint{m, root, root.raw}, nil
	}
	root.plain()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(format{Type: "structural_tag", Format: root}); err != nil {
		return nil, fmt.Errorf("prompt: constraint: %w", err)
	}
	return &Constraint{m, root, bytes.TrimSuffix(out.Bytes(), []byte("\n"))}, nil
}

// StructuralTag returns the constraint as a structural tag in JSON. Equal demands have equal bytes. The caller must not
// modify them.
//
// Send it to vLLM as response_format of /v1/completions, and start vLLM without --reasoning-parser, which would suspend
// the constraint until the end of reasoning; or as a string to /inference/v1/generate, with reasoning_ended. Start it with VLLM_XGRAMMAR_CACHE_MB=0: the cache of xgrammar 0.2.8 mixes up
// constraints that differ only in token ids. SGLang takes it as a string, the sampling parameter structural_tag.
func (c *Constraint) StructuralTag() []byte { return c.tag }

// JSONSchema returns the schema that the output must match from its beginning, for engines that enforce nothing else, such as
// Ollama: reasoning before it is then impossible. The error is an *[apierr.Error] of class Invalid for any other demand.
func (c *Constraint) JSONSchema() (json.RawMessage, error) {
	list := []format{*c.root}
	if c.root.Type == "sequence" {
		list = c.root.Elements
	}
	list = slices.DeleteFunc(slices.Clone(list), func(f format) bool { return f.Type == "optional" })
	if len(list) != 1 || list[0].Type != "json_schema" || list[0].Schema[0] != '{' {
		return nil, unforced("", "the engine enforces only a JSON schema of the whole output")
	}
	return list[0].Schema, nil
}

// format is a part of a constraint. It has the fields of a structural tag.
type format struct {
	Type     string          `json:"type"`
	Format   *format         `json:"format,omitempty"`         // structural_tag
	Token    *uint32         `json:"token,omitempty"`          // token
	Exclude  []uint32        `json:"exclude_tokens,omitempty"` // any_tokens
	Value    string          `json:"value,omitempty"`          // const_string
	Schema   json.RawMessage `json:"json_schema,omitempty"`    // json_schema
	Pattern  string          `json:"pattern,omitempty"`        // regex
	Grammar  string          `json:"grammar,omitempty"`        // grammar
	Excludes []string        `json:"excludes,omitempty"`       // any_text
	Begin    *string         `json:"begin,omitempty"`          // tag
	Content  *format         `json:"content,omitempty"`        // tag, optional, star, repeat
	End      string          `json:"end,omitempty"`            // tag
	Elements []format        `json:"elements,omitempty"`       // sequence, or
	Min      *int            `json:"min,omitempty"`            // repeat
	Max      *int            `json:"max,omitempty"`            // repeat; -1 for any number
	raw      json.RawMessage // a structural tag of the client's
	text     *ruledText      // what the grammar is of, if it is of a text
	name     *automaton      // or of a name
}

// plain replaces the schemas by such that engines enforce.
func (f *format) plain() {
	if f.Schema != nil {
		f.Schema = plainSchema(f.Schema)
	}
	if f.Content != nil {
		f.Content.plain()
	}
	for i := range f.Elements {
		f.Elements[i].plain()
	}
}

func sequence(list ...format) format {
	if len(list) == 1 {
		return list[0]
	}
	return format{Type: "sequence", Elements: list}
}

func anyOf(list ...format) format {
	if len(list) == 1 {
		return list[0]
	}
	return format{Type: "or", Elements: list}
}

func optional(list ...format) format {
	content := sequence(list...)
	return format{Type: "optional", Content: &content}
}

// A demand is what a request demands of the output.
type demand struct {
	model  *Model
	req    *block.Request
	prompt string
	shape  *callShape
	spent  int // work for automata
	tried  int // arguments that the parser was given to read
}

// anyObject is the schema of tools that have none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// format returns the format of the output, or nil.
func (d *demand) format() (*format, error) {
	text, from, err := d.textFormat()
	if err != nil {
		return nil, err
	}
	callable, required, err := d.tools()
	tools := callable
	if !required {
		tools = nil
	}
	switch {
	case err != nil:
		return nil, err
	case text == nil && tools == nil:
		return d.strictFormat(callable)
	case text != nil && tools != nil && (text.raw != nil || from != formatParam(d.req.API())): // not only of visible text
		return nil, apierr.Invalid(from, "The output cannot be a required call and have the format of %s.", from)
	case text != nil && text.raw != nil:
		return text, nil
	case tools == nil && d.req.API() == block.Completions: // what the template prints around it would be in the response
		return text, nil
	case d.model.tok == nil:
		return nil, unforced("", "the model has no tokenizer")
	}
	d.shape = d.model.callShape()
	list := d.thinking()
	switch {
	case tools != nil:
		calls, err := d.callFormat(tools)
		if err != nil {
			return nil, err
		}
		list = append(list, calls...)
	default:
		list = append(list, d.lits(d.shape.text[0])...)
		list = append(list, *text)
		list = append(list, d.lits(d.shape.text[1])...)
	}
	out := sequence(list...)
	return &out, nil
}

// unforced returns the error for a demand that cannot be passed to an engine.
func unforced(param, why string) error {
	return &apierr.Error{Why: event.Invalid, Param: param, Code: apierr.CodeUnsupported, Message: "The output cannot be constrained: " + why + "."}
}

// formatParam returns the field of an API that specifies the format of visible text.
func formatParam(api block.API) string {
	switch api {
	case block.Responses:
		return "text.format"
	case block.Messages:
		return "output_config.format"
	}
	return "response_format"
}

// textFormat returns the format of the visible text and the field that demands it, or nil if it is free.
func (d *demand) textFormat() (out *format, from string, err error) {
	set := func(param string, e format) error {
		if out != nil {
			return apierr.Invalid(param, "The output cannot have two formats: %s and %s.", from, param)
		}
		out, from = &e, param
		return nil
	}
	f := d.req.Params().Format
	param := formatParam(d.req.API())
	switch f.Type {
	case "", "text":
	case "json_object":
		set(param, format{Type: "json_schema", Schema: anyObject})
	case "json_schema":
		if len(f.Schema) == 0 {
			return nil, "", apierr.Invalid(param, "The format has no schema.")
		}
		set(param, format{Type: "json_schema", Schema: f.Schema})
	case "structural_tag":
		set(param, format{raw: d.req.Field(strings.Split(param, ".")...)})
	default:
		return nil, "", apierr.Invalid(param, "The format %q is not known.", f.Type)
	}
	fields := map[string]json.RawMessage{}
	if raw := d.req.Field("structured_outputs"); len(raw) > 0 && string(raw) != "null" {
		if json.Unmarshal(raw, &fields) != nil {
			return nil, "", apierr.Invalid("structured_outputs", "The constraint is not an object.")
		}
	}
	list := []struct{ param, kind string }{}
	for kind := range fields {
		list = append(list, struct{ param, kind string }{"structured_outputs." + kind, kind})
	}
	slices.SortFunc(list, func(a, b struct{ param, kind string }) int { return strings.Compare(a.kind, b.kind) })
	for _, kind := range []string{"json", "regex", "choice", "grammar"} {
		if raw := d.req.Field("guided_" + kind); len(raw) > 0 {
			fields["guided_"+kind] = raw
			list = append(list, struct{ param, kind string }{"guided_" + kind, "guided_" + kind})
		}
	}
	for _, c := range list {
		raw := fields[c.kind]
		if string(raw) == "null" {
			continue
		}
		e, err := vllmFormat(strings.TrimPrefix(c.kind, "guided_"), c.param, raw)
		if err != nil {
			return nil, "", err
		}
		if e == nil {
			continue // an option
		}
		if err := set(c.param, *e); err != nil {
			return nil, "", err
		}
	}
	return out, from, nil
}

// vllmFormat converts a member of vLLM's structured_outputs. It returns nil for options of the engine's, which have no
// effect on what the output may be.
func vllmFormat(kind, param string, raw json.RawMessage) (*format, error) {
	var text string
	isText := json.Unmarshal(raw, &text) == nil
	switch kind {
	case "json":
		if isText {
			raw = json.RawMessage(text) // the schema as a string, as vLLM accepts it too
		}
		if !json.Valid(raw) {
			return nil, apierr.Invalid(param, "The schema is not JSON.")
		}
		return &format{Type: "json_schema", Schema: raw}, nil
	case "json_object":
		if string(raw) != "true" {
			return nil, nil
		}
		return &format{Type: "json_schema", Schema: anyObject}, nil
	case "regex", "grammar":
		if !isText || text == "" {
			return nil, apierr.Invalid(param, "The constraint is not a string.")
		}
		if kind == "regex" {
			return &format{Type: "regex", Pattern: text}, nil
		}
		return &format{Type: "grammar", Grammar: text}, nil
	case "choice":
		var list []string
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 || slices.Contains(list, "") {
			return nil, apierr.Invalid(param, "The choices are not a list of texts.")
		}
		out := format{Type: "or", Elements: make([]format, 0, len(list))}
		for _, c := range list {
			out.Elements = append(out.Elements, format{Type: "const_string", Value: c})
		}
		out = anyOf(out.Elements...)
		return &out, nil
	case "structural_tag":
		if isText {
			raw = json.RawMessage(text)
		}
		if !json.Valid(raw) {
			return nil, apierr.Invalid(param, "The structural tag is not JSON.")
		}
		return &format{raw: raw}, nil
	case "disable_any_whitespace", "disable_additional_properties", "whitespace_pattern", "backend", "disable_fallback":
		return nil, nil
	}
	return nil, apierr.Invalid(param, "The constraint %q is not known.", kind)
}

// choiceParam returns the field with the tool choice of a request: tool_choice or, in the form before tools, function_call.
func choiceParam(r *block.Request) string {
	given := func(name string) bool { return !slices.Contains([]string{"", "null"}, string(r.Field(name))) }
	if r.API() == block.Chat && !given("tool_choice") && given("function_call") {
		return "function_call"
	}
	return "tool_choice"
}

// unknownChoice returns an error for raw, the field param, unless it is absent: the API does not specify such a tool choice,
// or it names a tool that a server runs.
func unknownChoice(api block.API, param string, raw json.RawMessage) error {
	var typed struct{ Type string }
	known := "auto, none, required and objects that name tools"
	if api == block.Messages {
		known = "the types auto, any, none and tool"
	}
	switch {
	case len(raw) == 0 || string(raw) == "null" || api == block.Completions:
		return nil
	case json.Unmarshal(raw, &typed) != nil || typed.Type == "":
		return apierr.Invalid(param, "The tool choice is not known: there are %s.", known)
	case typed.Type == "allowed_tools":
		return apierr.Invalid(param, "The tool choice has no tools, or another mode than auto and required.")
	}
	return unforced(param, fmt.Sprintf("the type %.100q of the tool choice is not known, or belongs to a tool which another server runs", typed.Type))
}

// strict reports whether the arguments of calls of a tool must follow its schema.
func strict(t block.Tool) bool { return t.Strict != nil && *t.Strict }

// tools returns the tools that the model can call, and whether the output must contain a call. If it need not and no tool is
// strict, there are none. A choice that is not known or names a tool that does not exist is an error.
func (d *demand) tools() (list []block.Tool, required bool, err error) {
	choice := d.req.Params().ToolChoice
	param := choiceParam(d.req)
	if choice.Mode == block.ChoiceUnspecified {
		if err := unknownChoice(d.req.API(), param, d.req.Field(param)); err != nil {
			return nil, false, err
		}
	}
	tools := d.req.Tools()
	list = tools
	if choice.Allow != nil {
		list = nil
		for _, name := range choice.Allow {
			t := toolsNamed(tools, name)
			if t == nil {
				return nil, false, apierr.Invalid(param, "The tool %q is not among the tools of the request.", name)
			}
			list = append(list, t...)
		}
	}
	if choice.Mode == block.NoTools {
		return nil, false, nil
	}
	if required = choice.Mode == block.Required; !required && !slices.ContainsFunc(list, strict) {
		return nil, false, nil
	}
	var announced map[string]bool
	if slices.ContainsFunc(list, func(t block.Tool) bool { return t.Deferred }) {
		announced = make(map[string]bool)
		for _, t := range d.req.Turns() {
			announce(announced, t.Blocks)
		}
	}
	list = slices.DeleteFunc(slices.Clone(list), func(t block.Tool) bool {
		return t.Kind == block.Hosted || t.Deferred && !announced[t.Name]
	})
	if required && len(list) == 0 {
		return nil, false, apierr.Invalid(param, "A call is required, but there is no tool that the model can call.")
	}
	return list, required, nil
}

// announce adds the names of the deferred tools to which blocks refer. The prompt declares them there.
func announce(names map[string]bool, blocks []block.Block) {
	for i := range blocks {
		if blocks[i].Kind == block.ToolReference {
			names[blocks[i].Name] = true
		}
		announce(names, blocks[i].Content)
	}
}

// toolsNamed returns the tools that tool_choice calls name.
func toolsNamed(tools []block.Tool, name string) (list []block.Tool) {
	for _, t := range tools {
		if t.Name == name || t.ModelName == name {
			list = append(list, t)
		}
	}
	return list
}

// strictFormat returns the format of an output that may have calls, if one of the tools is strict, or nil. Free text has all
// tokens but those of calls and those that end the response, so that reasoning remains as it is.
func (d *demand) strictFormat(tools []block.Tool) (*format, error) {
	switch {
	case !slices.ContainsFunc(tools, strict):
		return nil, nil
	case d.model.tok == nil:
		return nil, unforced("tools", "the model has no tokenizer")
	}
	shape := *d.model.callShape()
	if shape.why != "" {
		return nil, unforced("tools", shape.why)
	}
	shape.first = strings.TrimLeft(shape.first, " \n") // the free text may have it
	d.shape = &shape
	for i := range tools {
		if !strict(tools[i]) && shape.params == nil {
			tools[i].Schema = nil // any object
		}
	}
	calls, err := d.callFormat(tools)
	if err != nil {
		return nil, err
	}
	if t := shape.thought; t[1] != "" { // each part is a message of its own
		message := sequence(slices.Concat(d.channel(t[0]), d.until(t[1]))...)
		text := slices.Concat(d.channel(shape.text[0]), []format{{Type: "any_tokens", Exclude: shape.exclude}}, d.lits(shape.text[1]))
		out := sequence(format{Type: "star", Content: &message}, anyOf(sequence(text...), sequence(calls...)))
		return &out, nil
	}
	spoken := shape.text[0] + shape.text[1] // what may be written without a call
	if g := d.model.grammar; g != nil && g.Tagged != nil && g.Tagged.Reasoning != nil {
		spoken += g.Tagged.Reasoning.Open.Text + g.Tagged.Reasoning.Close.Text
	}
	free, begin := markerIDs(d.lits(spoken)), markerIDs(d.lits(shape.first))
	if len(begin) == 0 || slices.Contains(free, begin[0]) {
		return nil, unforced("tools", "calls do not begin with a marker of their own")
	}
	exclude := slices.DeleteFunc(markerIDs(d.lits(shape.first+shape.more+shape.last)), func(id uint32) bool { return slices.Contains(free, id) })
	exclude = append(exclude, d.model.stops...)
	slices.Sort(exclude)
	text := format{Type: "any_tokens", Exclude: slices.Compact(exclude)}
	again := sequence(append(calls, text)...)
	rest := format{Type: "star", Content: &again}
	if shape.more == "" || d.req.Params().ToolChoice.Serial {
		rest.Type = "optional"
	}
	out := sequence(text, rest)
	return &out, nil
}

// channel is like lits, for the header of a message, whose channel may have any name.
func (d *demand) channel(header string) []format {
	list := d.lits(header)
	for i, f := range list {
		if f.Type == "const_string" && strings.Trim(f.Value, "abcdefghijklmnopqrstuvwxyz") == "" {
			list[i] = format{Type: "regex", Pattern: "[a-z]{1,20}"}
		}
	}
	return list
}

// markerIDs returns the ids of the tokens in a list.
func markerIDs(list []format) (ids []uint32) {
	for _, f := range list {
		if f.Token != nil {
			ids = append(ids, *f.Token)
		}
	}
	return ids
}

// callFormat returns the format of one call or, if the request and the template permit it, of several.
func (d *demand) callFormat(tools []block.Tool) ([]format, error) {
	shape := d.shape
	if shape.why != "" {
		return nil, unforced(choiceParam(d.req), shape.why)
	}
	var first, more format
	for i := range tools {
		args, err := d.arguments(&tools[i])
		if err != nil {
			return nil, err
		}
		call := func(before string) format {
			return sequence(append(d.lits(strings.ReplaceAll(before, sampleName, tools[i].ModelName)), args...)...)
		}
		first.Elements = append(first.Elements, call(shape.first))
		more.Elements = append(more.Elements, call(shape.more))
	}
	list := []format{anyOf(first.Elements...)}
	if shape.more != "" && !d.req.Params().ToolChoice.Serial {
		more = anyOf(more.Elements...)
		list = append(list, format{Type: "star", Content: &more})
	}
	return append(list, d.lits(shape.last)...), nil
}

// arguments returns the format of a tool's arguments.
func (d *demand) arguments(t *block.Tool) ([]format, error) {
	schema := json.RawMessage(t.Schema)
	if t.Kind == block.CustomTool {
		schema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`) // as chat.Walk declares it
	}
	if s := string(bytes.TrimSpace(schema)); s == "" || s == "true" || s == "{}" || s == "null" {
		schema = anyObject
	}
	schema = asObject(schema)
	if d.shape.params == nil {
		return []format{{Type: "json_schema", Schema: schema}}, nil
	}
	return d.parameters(schema, t.Name)
}

// asObject returns the schema with the type object if it has no keyword that specifies the type of a value.
func asObject(schema json.RawMessage) json.RawMessage {
	names, values, err := members(schema)
	if err != nil || slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{"type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"}, name)
	}) {
		return schema
	}
	return object(append(names, "type"), append(values, json.RawMessage(`"object"`)))
}

// thinking returns the format of the reasoning before the rest: none if the prompt has ended it.
func (d *demand) thinking() []format {
	if t := d.shape.thought; t[1] != "" { // messages of their own
		thought := sequence(slices.Concat(d.lits(t[0]), d.until(t[1]))...)
		return []format{{Type: "star", Content: &thought}}
	}
	g := d.model.grammar
	if g != nil && g.Elements != nil { // the prompt opens the reasoning, which the next part closes
		if _, ok := d.model.tok.TokenID(g.Elements.Close.Text); ok {
			return []format{{Type: "any_tokens", Exclude: d.shape.exclude}}
		}
	}
	if g == nil || g.Tagged == nil || g.Tagged.Reasoning == nil || g.Tagged.Reasoning.Inline {
		return nil
	}
	r := g.Tagged.Reasoning
	end := strings.TrimRight(d.prompt, " \n")
	if label := strings.TrimRight(r.Label, "\n"); label != "" {
		end = strings.TrimSuffix(end, label)
	}
	thought := append(d.until(r.Close.Text), format{Type: "regex", Pattern: `\n{0,2}`})
	switch {
	case r.Open.Text != "" && strings.HasSuffix(end, r.Open.Text):
		return thought
	case strings.HasSuffix(end, r.Close.Text):
		return nil
	case r.Open.Text == "":
		return nil
	}
	return []format{optional(append(d.lits(r.Open.Text), thought...)...)}
}

// until returns the format of any text up to and including end.
func (d *demand) until(end string) []format {
	list := d.lits(end)
	if first := list[0]; first.Type == "token" {
		return append([]format{{Type: "any_tokens", Exclude: d.shape.exclude}}, list...)
	}
	begin, text := "", format{Type: "any_text"}
	tag := format{Type: "tag", Begin: &begin, Content: &text, End: list[0].Value}
	if len(list) == 1 || list[1].Type != "token" {
		return append([]format{tag}, list[1:]...)
	}
	marker, _ := d.model.tok.Token(*list[1].Token) // only this ends the text, not what precedes it
	text.Excludes = []string{marker}
	return append([]format{tag, {Type: "star", Content: &tag}}, list[1:]...)
}

// lits returns the format of a text that is printed: the markers of the family that are tokens of the vocabulary as
// tokens, and the ids of calls as any id.
func (d *demand) lits(text string) (list []format) {
	begin := 0
	for i := 0; i <= len(text); {
		found, size := d.mark(text[i:])
		if size == 0 && i < len(text) {
			i++
			continue
		}
		if i > begin {
			list = append(list, format{Type: "const_string", Value: text[begin:i]})
		}
		if size == 0 {
			break
		}
		list = append(list, found)
		i += size
		begin = i
	}
	return list
}

// mark returns the format of what is not constant at the start of a text, and its length, which is 0 for constant text.
func (d *demand) mark(text string) (format, int) {
	switch {
	case text == "":
		return format{}, 0
	case strings.HasPrefix(text, anyID):
		return format{Type: "regex", Pattern: d.model.idPattern()}, len(anyID)
	case strings.HasPrefix(text, anyNumber):
		return format{Type: "regex", Pattern: "[0-9]{1,4}"}, len(anyNumber)
	}
	for _, m := range d.shape.markers[text[0]] {
		if strings.HasPrefix(text, m.text) {
			return format{Type: "token", Token: &m.id}, len(m.text)
		}
	}
	return format{}, 0
}

// idPattern returns a regular expression for the ids of calls that the model writes.
func (m *Model) idPattern() string {
	if m.caps.Has("short_ids") {
		return fmt.Sprintf("[A-Za-z0-9]{%d}", shortLen)
	}
	return "[A-Za-z0-9_-]{1,40}"
}
