// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// This file checks, for every chat template at hand, whether each prompt of an agent's loop begins with the previous prompt
// and the response as the model wrote it. The response is the template's own: what it prints for the message after the prompt.

var update = flag.Bool("update", false, "rewrite the table in testdata, keeping the lines of templates that are not at hand")

// steps are the responses of the model to each prompt of the loop, by the name of the growth to the next prompt.
var steps = []struct {
	name, thought, text string
	calls               []string // values of the argument x
}{
	{"call", "Zqr0 think.", "", []string{"val1"}},
	{"calls", "Zqr1 think.", "Zqt1 look.", []string{"北京", "val2"}},
	{"question", "Zqr2 think.", "Zqt2 done.", nil},
	{"again", "Zqr3 think.", "", []string{"val3"}},
}

// A subject is a model with a template.
type subject struct {
	model *prompt.Model
	plain template.Template // the template alone
	caps  template.Capabilities
	known string // why the loop cannot be played; "" if it can
}

var specials = regexp.MustCompile(`<\|[^|<>\s]*\|>|<｜[^｜<>\s]*｜>`)

// newSubject loads a model of a template and a small vocabulary with the template's tokens.
func newSubject(t testing.TB, name, source string) *subject {
	tokens := specials.FindAllString(source, -1)
	if strings.Contains(source, "<|channel|>analysis") {
		tokens = append(tokens, "<|call|>") // of harmony, though a draft of its template has none
	}
	return loadSubject(t, name, fstest.MapFS{
		"tokenizer.json": tokenizerJSON(slices.Compact(slices.Sorted(slices.Values(tokens)))...), "chat_template.jinja": file(source),
		"tokenizer_config.json": file(`{"bos_token":"<bos>","eos_token":"<eos>"}`),
	})
}

// loadSubject loads a model as the gateway does by default.
func loadSubject(t testing.TB, name string, fsys fs.FS) *subject {
	m, err := prompt.Load(fsys, &prompt.Options{Name: name, Replay: replay.MustRule("widest")})
	if err != nil {
		return &subject{known: err.Error()}
	}
	return &subject{model: m, caps: m.Capabilities(), plain: prompt.Template(m)}
}

// reasons reports whether the model reasons before it answers.
func (s *subject) reasons() bool {
	return s.caps.Text("reasoning_key") != "" || s.caps.Has("opens_reasoning") && prompt.Tags(s.model) != nil
}

// turnEnds are the marks that end a turn. A model samples one, which is not part of the response.
var turnEnds = []string{
	"<|im_end|>", "<eos>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<|end|>", "<|call|>", "<|return|>", "</s>", "\n\n<sep>", "<|end_of_text|>", "<|message_sep|>",
	"<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|end_of_msg|>", "[e~[", "<seed:eos>", "<|assistant_end|>", "</assistant>", "<|tool_response>", "<|observation|>", "<|user|>",
	"<end_of_sentence>", "<sep>", "<|role_end|>", "<SPECIAL_12>", "<|end_turn|>", "<｜hy_eos:opensource｜>", "<|close|>message", "<|tools_suffix|>", "<|begin|>", "<|eot|>", "<|im_start|>",
}

func quote(v string) string {
	b, _ := json.Marshal(v) // always encodes
	return string(b)
}

const growTools = `[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}]`

// A loop is a conversation with a subject: the client's, and the same one as the template would be given it.
type loop struct {
	t       testing.TB
	s       *subject
	c       *client
	compact bool // the model writes arguments without white space
	memo    *prompt.Memo
	calls   int
	sampled []uint32 // with ids: the last prompt and response as tokens
	ids     bool     // compare tokens too
	split   bool     // the model writes bytes as tokens
	plain   []string // messages
	tools   string
	debug   bool
}

// render renders the plain messages with the variables of p.
func (l *loop) render(req *block.Request, p *prompt.Prompt, open bool) (string, error) {
	r, err := l.s.plain.Render(template.Request{
		Messages: []byte("[" + strings.Join(l.plain, ",") + "]"), Tools: []byte(l.tools), Kwargs: prompt.Kwargs(l.s.model, req, p), Now: noon, AddGenerationPrompt: open,
	})
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// more are the fields with which an API turns reasoning on.
var reasoningOn = map[string]string{
	"chat": `"reasoning_effort":"high"`, "responses": `"reasoning":{"effort":"high"}`, "messages": `"thinking":{"type":"enabled","budget_tokens":2048}`,
}

// play plays the loop and returns a cell for each step: "=" if the next prompt begins with the previous one and the response,
// "!" if the template given the same messages does not print that either, or what else happened.
func (l *loop) play() (cells []string) {
	s := l.s
	calls := s.caps.Has("tools") && (s.caps.Has("tool_calls") || s.caps.Has("flat_calls"))
	if calls {
		l.tools = growTools
	}
	user := func(text string) {
		l.c.user(text)
		l.plain = append(l.plain, `{"role":"user","content":`+quote(text)+`}`)
	}
	user("Zqu0 first.")
	more := ""
	if s.reasons() {
		more = reasoningOn[l.c.api]
	}
	last := ""
	for n := 0; ; n++ {
		turn := l.memo.Turn("", "", "s")
		req, err := turn.Decode(wireAPI(l.c.api), []byte(l.c.body(calls, more)), nil)
		require.NoError(l.t, err)
		p, err := turn.Render(s.model, req, noon)
		if err != nil {
			return append(cells, "refused: "+err.Error())
		}
		if n > 0 {
			cell := "="
			if !strings.HasPrefix(p.Text, last) {
				cell = "!"
				own, err := l.render(req, p, true)
				if err == nil && strings.HasPrefix(own, last) {
					cell = "ours"
				}
				if l.debug || cell == "ours" {
					at := max(0, common(p.Text, last)-60)
					l.t.Logf("%s %s: %s\nlast %q\nnext %q\nown  %q %v", l.c.api, steps[n-1].name, cell, last[at:], p.Text[at:min(len(p.Text), at+200)], own[min(len(own), at):min(len(own), at+200)], err)
				}
			}
			if l.ids && cell == "=" && (len(p.IDs()) < len(l.sampled) || !slices.Equal(p.IDs()[:len(l.sampled)], l.sampled)) {
				cell = "ids"
				if l.debug {
					tok := s.model.Tokenizer()
					at := 0
					for at < len(p.IDs()) && at < len(l.sampled) && p.IDs()[at] == l.sampled[at] {
						at++
					}
					l.t.Logf("%s %s: %q, sampled %q", l.c.api, steps[n-1].name, tok.AppendDecode(nil, p.IDs()[at:min(len(p.IDs()), at+8)], false), tok.AppendDecode(nil, l.sampled[at:min(len(l.sampled), at+8)], false))
				}
			}
			cells = append(cells, cell)
		}
		if n == len(steps) {
			return cells
		}
		step := steps[n]
		switch {
		case !calls && len(step.calls) > 0:
			step.calls, step.text = nil, "Zqt text."
		case !s.caps.Has("parallel_calls") && len(step.calls) > 1:
			step.calls = step.calls[1:]
		}
		out, ids, why := l.response(req, p, step.thought, step.text, step.calls)
		if why != "" {
			return append(cells, why)
		}
		dec, err := s.model.NewDecoder(req, p, nil)
		if err != nil {
			return append(cells, err.Error())
		}
		var tokens []uint32
		if l.ids { // as a model writes it, whose marks are tokens
			tokens = s.model.Tokenizer().AppendEncodeSegments(nil, []tokenizers.Segment{{Text: out, Trusted: true}})
			if l.split {
				tokens = splitTokens(s.model.Tokenizer(), tokens)
			}
			l.sampled = slices.Concat(p.IDs(), tokens)
		}
		decode := func(dst []event.Event) []event.Event { return dec.Append(dst, out) }
		if l.split {
			decode = func(dst []event.Event) []event.Event { return dec.AppendTokens(dst, tokens...) }
		}
		var events []event.Event
		for _, next := range []func([]event.Event) []event.Event{decode, dec.Finish} {
			for _, e := range next(nil) {
				if e.Kind != event.Finish && e.Kind != event.Start && e.Kind != event.Usage {
					events = append(events, e.Clone())
				}
			}
		}
		if slices.ContainsFunc(events, func(e event.Event) bool {
			return e.Kind == event.ToolAbort || e.Kind == event.ToolStart && e.Flags&event.InReasoning != 0
		}) {
			return append(cells, fmt.Sprintf("a call is not complete in %q", out))
		}
		l.c.answer(events...)
		if l.debug {
			l.t.Logf("%s %s: %q", l.c.api, step.name, out)
		}
		if len(l.c.ids) != len(step.calls) {
			return append(cells, fmt.Sprintf("%d calls in %q", len(l.c.ids), out))
		}
		if l.c.api == "messages" {
			l.c.reprint()
		}
		last = p.Text + out
		if len(step.calls) == 0 {
			user("Zqu1 next.")
			continue
		}
		l.c.results("Zqresult ", "")
		for i, id := range ids {
			l.plain = append(l.plain, `{"role":"tool","tool_call_id":`+quote(id)+`,"name":"f","content":"Zqresult `+strconv.Itoa(i)+`"}`)
		}
	}
}

// response returns what the model writes after p, and the ids of its calls. It adds the message to the plain ones.
func (l *loop) response(req *block.Request, p *prompt.Prompt, thought, text string, calls []string) (out string, ids []string, why string) {
	s := l.s
	tags := prompt.Tags(s.model)
	m := `{"role":"assistant","content":` + quote(text)
	if s.reasons() {
		m += `,"reasoning_content":` + quote(thought)
	}
	var list []string
	for _, x := range calls {
		id := fmt.Sprintf("Zqid%05d", l.calls)
		if s.model.Family() == "kimi_k2" {
			id = fmt.Sprintf("functions.f:%d", l.calls)
		}
		l.calls++
		ids = append(ids, id)
		args := `{"x": ` + quote(x) + `}`
		if s.caps.Has("object_arguments") && !l.compact {
			list = append(list, `{"id":`+quote(id)+`,"type":"function","function":{"name":"f","arguments":`+args+`}}`)
			continue
		}
		if l.compact {
			args = `{"x":` + quote(x) + `}`
		}
		list = append(list, `{"id":`+quote(id)+`,"type":"function","function":{"name":"f","arguments":`+quote(args)+`}}`)
	}
	if len(list) > 0 {
		m += `,"tool_calls":[` + strings.Join(list, ",") + `]`
	}
	closed, err1 := l.render(req, p, false)
	open, err2 := l.render(req, p, true)
	l.plain = append(l.plain, m+"}")
	whole, err3 := l.render(req, p, false)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", nil, "the template fails: " + err.Error()
	}
	mark := text
	if len(calls) > 0 {
		mark = calls[len(calls)-1]
	}
	if tail := whole[min(len(whole), common(whole, closed)):]; text != "" && len(calls) > 0 && !textFirst(tail, text, calls[0]) {
		l.plain = l.plain[:len(l.plain)-1] // it prints the text elsewhere, so the model was not trained to write any
		l.calls -= len(calls)
		return l.response(req, p, thought, "", calls)
	}
	out, ok := strings.CutPrefix(whole, open)
	if !ok { // it prints the conversation or the beginning of the message in another way
		head, whole1 := strings.CutPrefix(open, closed)
		if usual := s.caps.Text("generation_prompt"); !whole1 && strings.HasSuffix(open, usual) {
			head = usual
		}
		opened := false
		if tags != nil {
			if k := strings.Index(head, strings.TrimSpace(tags.Open)); k >= 0 {
				head, opened = head[:k], true
			}
		}
		at := 0
		if k := strings.LastIndex(whole[:max(0, strings.LastIndex(whole, mark))], head); k >= 0 {
			at = k + len(head)
		}
		if rest, ok := strings.CutPrefix(whole, closed); ok && at < len(closed) {
			at = len(whole) - len(rest)
		}
		out = whole[at:]
		if opened {
			if rest, ok := strings.CutPrefix(out, tags.Open); ok {
				out = rest
			} else {
				out = thought + tags.Close + strings.TrimLeft(out, "\n")
			}
		}
	}
	if at := strings.LastIndex(out, mark); at >= 0 {
		end := len(out)
		for _, e := range turnEnds {
			if k := strings.Index(out[at:], e); k >= 0 {
				end = min(end, at+k)
			}
		}
		out = out[:end]
	}
	if l.compact {
		out = strings.ReplaceAll(out, `{"x": `, `{"x":`)
	}
	return out, ids, ""
}

// textFirst reports whether a turn has text and a call after it.
func textFirst(turn, text, call string) bool {
	_, rest, ok1 := strings.Cut(turn, text)
	between, _, ok2 := strings.Cut(rest, call)
	return ok1 && ok2 && !slices.ContainsFunc(turnEnds, func(e string) bool { return strings.Contains(between, e) })
}

func newLoop(t testing.TB, s *subject, api string) *loop {
	return &loop{t: t, s: s, c: &client{t: t, api: api}, memo: prompt.NewMemo(0), debug: os.Getenv("WEFT_DEBUG") != ""}
}

// templatesAtHand returns the sources of the templates of the test data outside the repository and of the directories in
// WEFT_TEMPLATES, by the name of the file and the beginning of its hash.
func templatesAtHand(t testing.TB) map[string]string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(sharedDir(), "tok", "*", "chat_template.jinja"))
	for _, dir := range append(filepath.SplitList(os.Getenv("WEFT_TEMPLATES")), filepath.Join(sharedDir(), "tok", "_templates")) {
		more, _ := filepath.Glob(filepath.Join(dir, "*.jinja*"))
		files = append(files, more...)
	}
	out := map[string]string{}
	seen := map[string]bool{}
	for _, f := range slices.Backward(files) { // the templates of tokenizers have a name among the others
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		if seen[string(source)] {
			continue
		}
		seen[string(source)] = true
		name := filepath.Base(f)
		sum := sha256.Sum256(source)
		out[fmt.Sprintf("%s %x", name[:strings.Index(name, ".jinja")], sum[:4])] = string(source)
	}
	if len(out) == 0 {
		t.Skip("no templates: set WEFT_SHARED or WEFT_TEMPLATES")
	}
	return out
}

// cells plays the loop for each API and both spellings of the arguments, and returns what TestPromptsExtend expects: a cell
// for each step, and one for arguments without white space.
func (s *subject) cells(t testing.TB, name string) string {
	if s.known != "" {
		return "- " + s.known
	}
	var first []string
	for i, api := range apis {
		cells := newLoop(t, s, api).play()
		if i == 0 {
			first = cells
		}
		require.Equal(t, first, cells, "%s: %s and %s differ", name, apis[0], api)
	}
	if last := first[len(first)-1]; len(last) > len("ours") {
		return "- " + last
	}
	l := newLoop(t, s, "chat")
	l.compact = true
	compact := "="
	if !slices.Equal(l.play(), first) {
		compact = "!"
	}
	return strings.Join(first, " ") + " " + compact
}

// A row is a template in the table.
type row struct {
	cells   string
	reasons map[string]string // by the name of a cell
}

var cellNames = []string{"call", "calls", "question", "again", "compact"}

// String returns the lines of the row.
func (r *row) String() string {
	s := r.cells + "\n"
	for _, name := range cellNames {
		if why, ok := r.reasons[name]; ok {
			s += "\t" + name + ": " + why + "\n"
		}
	}
	return s
}

// forced returns the names of the cells that the template forces.
func (r *row) forced() (names []string) {
	for i, cell := range strings.Fields(r.cells) {
		if cell == "!" {
			names = append(names, cellNames[i])
		}
	}
	return names
}

// readTable reads the table, which has comments before the first row.
func readTable(t testing.TB, file string) (head string, rows map[string]*row) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	rows = map[string]*row{}
	var last *row
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		switch why, isReason := strings.CutPrefix(line, "\t"); {
		case strings.HasPrefix(line, "#"):
			head += line + "\n"
		case isReason:
			name, why, ok := strings.Cut(why, ": ")
			require.True(t, ok && last != nil && slices.Contains(cellNames, name), "%s: %q", file, line)
			last.reasons[name] = why
		default:
			name, cells, ok := strings.Cut(line, " | ")
			require.True(t, ok && rows[name] == nil, "%s: %q", file, line)
			last = &row{cells, map[string]string{}}
			rows[name] = last
		}
	}
	return head, rows
}

// checkReasons checks that each forced cell names a line of the template with its text.
func (r *row) checkReasons(t *testing.T, name, source string) {
	forced := r.forced()
	require.Len(t, r.reasons, len(forced), "%s: reasons for cells that are not forced, or none for those that are", name)
	lines := strings.Split(source, "\n")
	for _, cell := range forced {
		number, text, _ := strings.Cut(r.reasons[cell], " ")
		n, err := strconv.Atoi(number)
		require.NoError(t, err, "%s: %s: %q", name, cell, r.reasons[cell])
		require.True(t, n >= 1 && n <= len(lines) && text != "" && strings.Contains(lines[n-1], text), "%s: %s: line %d is not %q", name, cell, n, text)
	}
}

// TestPromptsExtend compares what happens with the templates at hand with a table. In each cell, the next prompt begins with
// the previous prompt and the response, or a line of the template, given in the table, prevents that.
func TestPromptsExtend(t *testing.T) {
	const file = "testdata/extends.txt"
	head, rows := readTable(t, file)
	list := templatesAtHand(t)
	counts := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if testing.Short() && !strings.HasPrefix(name, "qwen") {
			continue
		}
		source := list[name]
		got := newSubject(t, strings.Fields(name)[0], source).cells(t, name)
		if *update {
			if rows[name] == nil {
				rows[name] = &row{reasons: map[string]string{}}
			}
			rows[name].cells = got
			continue
		}
		if rows[name] == nil {
			t.Errorf("%s is not in the table: %s", name, got)
			continue
		}
		require.Equal(t, rows[name].cells, got, name)
		require.NotContains(t, got, "ours", name)
		rows[name].checkReasons(t, name, source)
		for _, cell := range strings.Fields(got)[:1] {
			if cell == "-" {
				counts["not played"]++
			}
		}
		for _, cell := range strings.Fields(got) {
			if len(cell) == 1 && cell != "-" {
				counts[cell]++
			}
		}
	}
	for name := range rows { // of a file that changed
		base, _, _ := strings.Cut(name, " ")
		if list[name] == "" && slices.ContainsFunc(slices.Collect(maps.Keys(list)), func(n string) bool { return strings.HasPrefix(n, base+" ") }) {
			t.Errorf("%s: no template has this name and hash", name)
		}
	}
	t.Logf("%d of the %d templates of the table are at hand; cells: %v", len(list), len(rows), counts)
	if *update {
		out := head
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			out += name + " | " + rows[name].String()
		}
		require.NoError(t, os.WriteFile(file, []byte(out), 0o666))
	}
}

// TestPromptsExtendIDs compares the tokens of real vocabularies: the next prompt begins with the tokens of the previous
// prompt and the response.
func TestPromptsExtendIDs(t *testing.T) {
	if testing.Short() {
		t.Skip("large vocabulary")
	}
	for name, want := range map[string]string{
		"qwen2.5": "= = = =", "qwen3": "= = ! =", "qwen3.5-renum": "= = ! =", "kimi-k2": "= = = =", "gpt-oss": "= = = =", "phi-4": "= = = =",
	} {
		if testing.Short() && name != "qwen3" {
			continue
		}
		fsys := os.DirFS(filepath.Join(sharedDir(), "tok", name))
		if _, err := fs.Stat(fsys, "tokenizer_config.json"); err != nil {
			t.Logf("test data not there: %v (set WEFT_SHARED)", err)
			continue
		}
		s := loadSubject(t, name, fsys)
		for _, api := range apis {
			l := newLoop(t, s, api)
			l.ids = true
			require.Equal(t, want, strings.Join(l.play(), " "), "%s %s", name, api)
			if name == "gpt-oss" { // its first call ends the response
				continue
			}
			l = newLoop(t, s, api)
			l.ids, l.split = true, true
			require.Equal(t, want, strings.Join(l.play(), " "), "%s %s, split", name, api)
		}
	}
}

// splitTokens returns the ids of the bytes of tokens, of which the added ones remain whole.
func splitTokens(tok *tokenizers.Tokenizer, ids []uint32) (out []uint32) {
	added := map[uint32]bool{}
	for _, a := range tok.AddedTokens() {
		added[a.ID] = true
	}
	bytes := map[byte]uint32{}
	for id := range uint32(tok.VocabSize()) {
		if b := tok.AppendToken(nil, id); len(b) == 1 && !added[id] {
			bytes[b[0]] = id
		}
	}
	for _, id := range ids {
		if added[id] {
			out = append(out, id)
			continue
		}
		for _, b := range tok.AppendToken(nil, id) {
			out = append(out, bytes[b])
		}
	}
	return out
}

// TestPromptsExtendFormats plays the loop with the formats that are written in Go.
func TestPromptsExtendFormats(t *testing.T) {
	for _, tt := range []struct {
		family, format string
		vars           variables
		replay, want   string // a format drops reasoning at a question, unless it has a variable that keeps it
	}{
		{"hermes", "chatml", nil, "widest", "= = ! = ="},
		{"qwen3_coder", "chatml", variables{"calls": "xml"}, "widest", "= = ! = ="},
		{"hermes", "chatml", variables{"reasoning_scope": "all"}, "", "= = = = ="},
		{"harmony", "harmony", variables{"style": "library", "sampled_calls": true}, "widest", "= = = = ="},
		{"harmony", "harmony", variables{"style": "library", "sampled_calls": true}, "", "= = ! ! ="},
		{"deepseek_v3_2", "deepseek_v3_2", nil, "widest", "= = ! = ="},
		{"deepseek_v4", "deepseek_v4", nil, "widest", "= = = = ="},
		{"deepseek_v41", "deepseek_v41", nil, "widest", "= = = = ="},
		{"kimi_k3", "kimi_k3", nil, "widest", "= = = = ="},
	} {
		m, err := prompt.New(lookup(tt.format, tt.vars), &prompt.Options{Family: tt.family, Replay: replay.MustRule(tt.replay)})
		require.NoError(t, err)
		s := &subject{model: m, caps: m.Capabilities(), plain: prompt.Template(m)}
		if got := s.cells(t, tt.format); got != tt.want {
			t.Errorf("%s %v %q: %s, want %s", tt.format, tt.vars, tt.replay, got, tt.want)
		}
	}
}

// TestReasoningTail decodes reasoning that ends with a line end. If the template prints one before the closing tag, it is
// markup, otherwise part of the reasoning: in both cases, the next prompt begins with it.
func TestReasoningTail(t *testing.T) {
	for printed, want := range map[string]string{"": "Zqthink.\n", "\\n": "Zqthink."} {
		m := familyModel(t, compiled(`{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}{{ '<|channel>thought\n' + m.reasoning_content + '`+printed+`<channel|>' }}{% endif %}{{ m.content }}`+
			`{% for c in m.tool_calls or [] %}<|tool_call>call:{{ c.function.name }}{{ '{' }}{% for k, v in c.function.arguments | items %}{{ k }}:<|"|>{{ v }}<|"|>{% endfor %}}<tool_call|>{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`)(t), family.New("gemma4"))
		for _, api := range apis {
			c := &client{t: t, api: api}
			c.user("Zq")
			req := c.request(true, "")
			p, err := m.Render(req, noon)
			require.NoError(t, err)
			const out = "<|channel>thought\nZqthink.\n<channel|><|tool_call>call:f{x:<|\"|>1<|\"|>}<tool_call|>"
			events := decodeAll(t, m, req, p, out)
			thought := ""
			for _, e := range events {
				if e.Kind == event.Reasoning {
					thought += string(e.Data)
				}
			}
			require.Equal(t, want, thought)
			c.answer(events...)
			c.results("r", "")
			next, err := m.Render(c.request(true, ""), noon)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(next.Text, p.Text+out), "%q %s", printed, next.Text)
		}
	}
}
