// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// This file finds out how a template prints calls: it renders samples, takes them apart, and reads the result of putting
// other arguments in with the family's parser.

// callShape is the text that a template prints around the parts of a response. In all texts, sampleName is the place of a tool's name, and anyID and
// anyNumber are those of the id and the number of a call.
type callShape struct {
	why string // why calls are not known; "" if they are

	first  string      // before the arguments of the first call
	more   string      // between the arguments of two calls; "" if there cannot be two
	last   string      // after the arguments of the last one
	params *paramShape // nil if arguments are one JSON object

	text    [2]string // before and after visible text
	thought [2]string // before and after reasoning that is a message of its own; "" for reasoning in tags

	markers map[byte][]markerToken // by their first byte, long ones first
	exclude []uint32               // ids of the markers and of the tokens that end a response, sorted: free text has none of them
}

// markerToken is a marker that is a token of the vocabulary.
type markerToken struct {
	text string
	id   uint32
}

// paramShape is the text around arguments that a template prints separately.
type paramShape struct {
	before string    // before the key
	sep    [2]string // between key and value, for valueText and valueJSON
	after  string    // after the value
}

const (
	sampleName = "zqfind"
	sampleJSON = `{"zqkey": "Zqvalue", "zqnum": 70007}`
	shapeTools = `"tools":[{"type":"function","function":{"name":"zqfind","description":"Zqabout","parameters":{"type":"object",` +
		`"properties":{"zqkey":{"type":"string"},"zqnum":{"type":"integer"}},"required":["zqkey","zqnum"]}}}]`

	anyID     = "\x00i"
	anyNumber = "\x00n"
)

// sampleIDs are the ids of two calls, in the form of Mistral's.
var sampleIDs = [2]string{"Zqid00000", "Zqid00001"}

// callShape returns the shape of responses. The first call determines it.
func (m *Model) callShape() *callShape {
	m.shapes.once.Do(func() {
		s := m.newCallShape()
		if m.Family() == "" {
			s.why = "the format of the model's calls is not known"
		}
		if s.why == "" && !m.reads(s) {
			s.why = "the parser " + m.Family() + " does not read what the chat template would print"
		}
		s.findMarkers(m)
		m.shapes.shape = s
	})
	return m.shapes.shape
}

// findMarkers sets the markers: the control strings of the family and the special tokens of the vocabulary.
func (s *callShape) findMarkers(m *Model) {
	var list []string
	if m.grammar != nil {
		for _, k := range slices.Concat(m.grammar.Markers(), m.grammar.Special) {
			if k.Token {
				list = append(list, k.Text)
			}
		}
	}
	for _, t := range m.tok.AddedTokens() {
		if t.Special {
			list = append(list, t.Content)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	s.markers, s.exclude = make(map[byte][]markerToken), slices.Clone(m.stops)
	for _, text := range slices.Compact(list) {
		if id, ok := m.tok.TokenID(text); ok && text != "" {
			s.markers[text[0]] = append(s.markers[text[0]], markerToken{text, id})
			s.exclude = append(s.exclude, id)
		}
	}
	slices.Sort(s.exclude)
	s.exclude = slices.Compact(s.exclude)
}

// newCallShape renders the samples.
func (m *Model) newCallShape() *callShape {
	s := &callShape{}
	call := func(i int) string {
		id := sampleIDs[i]
		if n := numberIn(m.grammar); n != "" {
			id = fmt.Sprintf("%s%s%s%d", m.grammar.Tagged.Name.Prefix, sampleName, n, i)
		}
		args, _ := json.Marshal(sampleJSON)
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, id, sampleName, args)
	}
	if text, ok := m.response(`"content":"Zqtext"`); ok {
		before, after, _ := strings.Cut(text, "Zqtext")
		s.text = [2]string{before, strings.TrimRight(m.cut(after), "\n")}
	}
	one, ok := m.response(`"content":"","tool_calls":[` + call(0) + `]`)
	if !ok || !strings.Contains(one, sampleName) {
		s.why = "the chat template prints no calls"
		return s
	}
	args, ok := argumentsIn(one)
	if !ok {
		s.why = "the chat template prints the arguments of calls in a form that is not known"
		return s
	}
	s.params = args.params
	s.first, s.last = m.general(one[:args.start]), m.general(m.cut(one[args.end:]))
	last := strings.TrimRight(s.last, "\n")
	if end := s.text[1]; end != "" && strings.HasSuffix(last, end) { // what ends every message is not in the vocabulary
		s.last, s.text[1] = strings.TrimSuffix(last, end), ""
	}
	if two, ok := m.response(`"content":"","tool_calls":[` + call(0) + `,` + call(1) + `]`); ok && strings.HasPrefix(two, one[:args.end]) {
		rest := two[args.end:]
		if next, ok := argumentsIn(rest); ok && strings.Contains(rest[:next.start], sampleName) && strings.HasPrefix(m.general(rest[next.end:]), s.last) {
			if more := rest[:next.start]; m.cut(more) == more {
				s.more = m.general(more)
			}
		}
	}
	if g := m.grammar; g != nil && g.Tagged == nil {
		thinks, ok := m.response(`"content":"","reasoning_content":"` + sampleThought + `","tool_calls":[` + call(0) + `]`)
		before, after, found := strings.Cut(thinks, sampleThought)
		if ok && found && strings.HasSuffix(after, one) {
			s.thought = [2]string{before, strings.TrimSuffix(after, one)}
		}
	}
	return s
}

// response returns the text that the template prints for an assistant message, from where the model begins to write,
// without reasoning in tags.
func (m *Model) response(fields string) (string, bool) {
	const whole = `"add_generation_prompt":false,` + shapeTools
	before := m.printSample(whole, sampleUser)
	open := m.printSample(shapeTools, sampleUser)
	all := m.printSample(whole, sampleUser, `{"role":"assistant",`+fields+`}`)
	if before == "" || !strings.HasPrefix(all, before) {
		return "", false
	}
	text := all[len(before):]
	var opener, closer string
	if g := m.grammar; g != nil && g.Tagged != nil && g.Tagged.Reasoning != nil {
		opener, closer = g.Tagged.Reasoning.Open.Text, g.Tagged.Reasoning.Close.Text
	}
	if strings.HasPrefix(open, before) { // the header of the message, and what the prompt opens after it
		header := open[len(before):]
		for _, tag := range []string{opener, closer} {
			if i := strings.Index(header, tag); tag != "" && i >= 0 {
				header = header[:i]
			}
		}
		if !strings.HasPrefix(text, header) {
			return "", false
		}
		text = text[len(header):]
	}
	if i := strings.Index(text, closer); closer != "" && i >= 0 {
		text = strings.TrimLeft(text[i+len(closer):], "\n")
	}
	return text, true
}

// cut removes what follows the response: the markers that end it.
func (m *Model) cut(text string) string {
	for _, end := range m.ending() {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

// ending returns the texts that end a response.
func (m *Model) ending() []string {
	list := slices.Clone(terminators)
	for _, id := range m.stops {
		if text, ok := m.tok.Token(id); ok {
			list = append(list, text)
		}
	}
	if g := m.grammar; g != nil {
		var ends []grammar.Marker
		switch {
		case g.Tagged != nil:
			ends = g.Tagged.Ends
		case g.Channels != nil:
			ends = g.Channels.Ends
		}
		for _, e := range ends {
			list = append(list, e.Text)
		}
	}
	return list
}

var sampleNumber = regexp.MustCompile(`^[0-9]+`)

// general replaces the ids and numbers of the sample.
func (m *Model) general(text string) string {
	for _, id := range sampleIDs {
		text = strings.ReplaceAll(text, id, anyID)
	}
	n := numberIn(m.grammar)
	if n == "" {
		return text
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, sampleName+n)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString(sampleName + n)
		if k := len(sampleNumber.FindString(after)); k > 0 {
			out.WriteString(anyNumber)
			after = after[k:]
		}
		text = after
	}
}

// printedArguments are the arguments of a sample in a text.
type printedArguments struct {
	start, end int
	params     *paramShape
}

// argumentsIn finds the first arguments in a text.
func argumentsIn(text string) (out printedArguments, ok bool) {
	key := strings.Index(text, "zqkey")
	if key < 0 {
		return out, false
	}
	for at := strings.LastIndexByte(text[:key], '{'); at >= 0; at = strings.LastIndexByte(text[:at], '{') {
		var args map[string]any
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		if dec.Decode(&args) == nil && len(args) == 2 && args["zqkey"] == sampleValue && args["zqnum"] == 70007.0 {
			return printedArguments{start: at, end: at + int(dec.InputOffset())}, true
		}
	}
	value := strings.Index(text, sampleValue)
	number := strings.Index(text, "zqnum")
	amount := strings.Index(text, "70007")
	if !(key < value && value < number && number < amount) {
		return out, false
	}
	p := &paramShape{}
	p.sep[valueText], p.sep[valueJSON] = text[key+len("zqkey"):value], text[number+len("zqnum"):amount]
	between, tail := text[value+len(sampleValue):number], text[amount+len("70007"):]
	n := prefix(between, tail)
	for n > 0 && (strings.IndexByte("<[{|", between[n-1]) >= 0 || !strings.HasSuffix(text[:key], between[n:])) {
		n-- // markers are not cut apart
	}
	p.after, p.before = between[:n], between[n:]
	if p.after == "" || p.before == "" || !strings.HasSuffix(text[:key], p.before) {
		return out, false
	}
	return printedArguments{key - len(p.before), amount + len("70007") + len(p.after), p}, true
}

// reads reports whether the family's parser reads calls of this shape.
func (m *Model) reads(s *callShape) bool {
	const schema = `{"type":"object","properties":{"zqa":{"type":"string"},"zqb":{"type":"array"}}}`
	full, none := `{"zqa": "x y", "zqb": [1, {"c": null}]}`, `{}`
	if p := s.params; p != nil {
		full, none = p.before+"zqa"+p.sep[valueText]+"x y"+p.after+p.before+"zqb"+p.sep[valueJSON]+`[1, {"c": null}]`+p.after, ""
	}
	text := s.first + full
	want := []string{`{"zqa":"x y","zqb":[1,{"c":null}]}`}
	if s.more != "" {
		text += s.more + none
		want = append(want, `{}`)
	}
	return m.readsCalls(text+s.last, schema, want)
}

// plainText is text, and plainName a name, that each family can write.
var (
	plainText = regexp.MustCompile(`^[^\s<>\[\]|｜][^<>\n\[\]|｜]*$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// readsArgument reports whether the parser reads an argument that is written as a text, with its name.
func (m *Model) readsArgument(s *callShape, name, text string) bool {
	p := s.params
	schema := object([]string{"properties"}, []json.RawMessage{object([]string{name}, []json.RawMessage{[]byte(`{"type":"string"}`)})})
	return m.readsCalls(s.first+p.before+name+p.sep[valueText]+text+p.after+s.last, string(schema), []string{string(object([]string{name}, []json.RawMessage{quoteJSON(text)}))})
}

// readsCalls reports whether the parser reads calls of a tool with some arguments in a text, and nothing else.
func (m *Model) readsCalls(text, schema string, want []string) bool {
	text = strings.NewReplacer(sampleName, "zqtry", anyID, "Zqid00002", anyNumber, "0").Replace(text)
	opt := &parsers.Options{Tools: []parsers.Tool{{Name: "zqtry", Schema: []byte(schema)}}, Start: parsers.StartTurn}
	if m.grammar == nil || m.grammar.Tagged == nil {
		opt.Start, opt.Prompt = parsers.StartUnspecified, m.printSample(shapeTools, sampleUser)
	}
	p, err := m.opt.Parsers.New(m.opt.Family, opt)
	if err != nil {
		return false
	}
	var c event.Collector
	events, err := p.Append(nil, []byte(text))
	if err != nil {
		return false
	}
	c.Add(events...)
	events, _ = p.Finish(nil, event.Stop)
	c.Add(events...)
	if len(c.Answers) != 1 || c.Answers[0].Text() != "" {
		return false
	}
	calls := c.Answers[0].Calls()
	if len(calls) != len(want) {
		return false
	}
	for i, call := range calls {
		var got, wanted any
		if call.Name != "zqtry" || json.Unmarshal(call.Data, &got) != nil || json.Unmarshal([]byte(want[i]), &wanted) != nil || fmt.Sprint(got) != fmt.Sprint(wanted) {
			return false
		}
	}
	return true
}
