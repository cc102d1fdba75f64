// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// sameWithMemo renders a body with a turn and without, and compares the results.
func sameWithMemo(t require.TestingT, m *prompt.Model, turn *prompt.Turn, api, salt, session, body string, now time.Time) {
	plain, err := decode(api, []byte(body), nil)
	require.NoError(t, err, body)
	req, err := turn.Decode(wireAPI(api), []byte(body), nil)
	require.NoError(t, err, body)
	require.True(t, plain.Equal(req), body)
	turn.Bind(salt, session)
	want, wantErr := m.Render(plain, now)
	got, err := turn.Render(m, req, now)
	require.Empty(t, cmp.Diff(want.Losses, got.Losses, cmpopts.EquateEmpty()), body)
	require.Equal(t, want.Outcomes, got.Outcomes)
	require.Equal(t, want.Replay, got.Replay)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error(), body)
		return
	}
	require.NoError(t, err, body)
	require.Equal(t, want.Text, got.Text, body)
	require.Equal(t, want.Segments, got.Segments, body)
	require.Equal(t, want.Spans, got.Spans, body)
	marks, faults := want.Breakpoints(plain)
	again, faultsAgain := got.Breakpoints(req) // also before Paths finds all positions
	require.Equal(t, marks, again, body)
	require.Equal(t, faults, faultsAgain)
	require.Equal(t, want.Paths(), got.Paths(), body)
	want.Namespace, got.Namespace = salt, salt
	require.Equal(t, want.IDs(), got.IDs(), body)
	if last, n := got.Kept(); last != nil {
		require.Positive(t, n)
		require.Equal(t, last.([]uint32)[:n], got.IDs()[:n], body)
		require.False(t, n < min(len(last.([]uint32)), len(got.IDs())) && last.([]uint32)[n] == got.IDs()[n], "more ids are the same")
	}
	got.Keep(got.IDs(), 4*len(got.IDs()))
	for _, c := range got.Cuts() { // how many there are depends on what the cache held meanwhile
		require.Equal(t, m.Tokenizer().AppendEncodeSegments(nil, firstBytes(got.Segments, c.Bytes)), got.IDs()[:c.Tokens], body)
	}
	if m.Family() != "" && m.Tokenizer() != nil {
		require.Equal(t, engineBody(t, m, plain, want), engineBody(t, m, req, got))
	}
	again, faultsAgain = got.Breakpoints(req)
	require.Equal(t, marks, again, body)
	require.Equal(t, faults, faultsAgain)
	for _, k := range []int{len(marks) - 1, 0} { // the last mark, all marks
		if tok := m.Tokenizer(); tok != nil && k >= 0 {
			require.Equal(t, want.Tokens(tok, marks[k:], want.IDs()), got.Tokens(tok, marks[k:], got.IDs(), got.Cuts()...), body)
		}
	}
}

// TestMemoBreakpoints compares marks in growing conversations with templates that repeat messages, print them in another order,
// or print only some.
func TestMemoBreakpoints(t *testing.T) {
	for name, source := range map[string]string{
		"in order":      `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`,
		"backward":      `{% for m in messages | reverse %}<{{ m.role }}>{{ m.content }}{% endfor %}`,
		"repeats":       `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ messages[0].content }}{{ messages[1].content }}`,
		"last first":    `{{ messages[-1].content }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`,
		"last twice":    `{% for m in messages %}{% if loop.last %}{{ messages[-1].content }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}`,
		"in pairs":      `{% for m in messages %}{% if loop.index0 % 2 == 0 %}{% if not loop.last %}{{ messages[loop.index0 + 1].content }}{% endif %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`,
		"without one":   `{% for m in messages %}{% if loop.index0 != 2 %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`,
		"trims":         `{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% endfor %}`,
		"late tools":    `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools }}`,
		"tools as well": `{{ tools }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`,
	} {
		t.Run(name, func(t *testing.T) {
			m, err := prompt.New(compiled(source)(t), nil)
			require.NoError(t, err)
			mark := `,"cache_control":{"type":"ephemeral"}`
			for _, at := range []func(i, n int) bool{
				func(i, n int) bool { return i == n-1 },
				func(i, n int) bool { return i >= n-3 },
				func(i, n int) bool { return i%4 == 1 },
				func(i, n int) bool { return true },
			} {
				for _, tools := range []string{"", mark} {
					memo := prompt.NewMemo(0)
					for n := 1; n < 9; n++ {
						body := `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{}` + tools + `}],"system":"Zqs","messages":[`
						for i := range n {
							role, cache := []string{"user", "assistant"}[i%2], ""
							if at(i, n) {
								cache = mark
							}
							body += fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":" "},{"type":"text","text":"Zqx%d. \n"%s},{"type":"text","text":"Zqy%d."}]},`, role, i, cache, i)
						}
						sameWithMemo(t, m, memo.Turn("", "", ""), "messages", "", "", strings.TrimSuffix(body, ",")+"]}", noon)
					}
				}
			}
		})
	}
}

// firstBytes returns the first n bytes of segments.
func firstBytes(list []tokenizers.Segment, n int) (out []tokenizers.Segment) {
	for _, s := range list {
		if n < len(s.Text) {
			return append(out, tokenizers.Segment{Text: s.Text[:n], Trusted: s.Trusted})
		}
		out, n = append(out, s), n-len(s.Text)
	}
	return out
}

// engineBody returns the body of a request to an engine.
func engineBody(t require.TestingT, m *prompt.Model, req *block.Request, p *prompt.Prompt) string {
	dec, err := m.NewDecoder(req, p, nil)
	require.NoError(t, err)
	return string(dec.AppendRequest(nil, "m"))
}

func wireAPI(name string) *wire.API {
	for _, a := range []*wire.API{wire.Chat, wire.Responses, wire.Messages} {
		if strings.Contains(strings.ToLower(a.String()), name) {
			return a
		}
	}
	panic(name)
}

// A thread is the body of a request that grows and changes.
type thread struct {
	api  string
	body object
}

func (v *thread) list() string {
	if v.api == "responses" {
		return "input"
	}
	return "messages"
}

// evolve returns the next request: mostly with more messages, sometimes with other changes.
func (v *thread) evolve(rt *rapid.T) *thread {
	next := &thread{v.api, object{}}
	for k, x := range v.body {
		next.body[k] = x
	}
	list := append([]any(nil), v.body[v.list()].([]any)...)
	more := drawThread(rt, v.api)
	at := func() int { return rapid.IntRange(0, len(list)-1).Draw(rt, "at") }
	switch rapid.SampledFrom([]string{"more", "more", "more", "more", "same", "drop", "insert", "replace", "compact", "others", "header"}).Draw(rt, "change") {
	case "more":
		list = append(list, more.body[v.list()].([]any)...)
	case "drop":
		if i := at(); len(list) > 1 {
			list = append(list[:i:i], list[i+1:]...)
		}
	case "insert":
		i := at()
		list = append(append(list[:i:i], more.body[v.list()].([]any)[0]), list[i:]...)
	case "replace":
		list[at()] = more.body[v.list()].([]any)[0]
	case "compact":
		list = append([]any{object{"role": "user", "content": "A summary."}}, list[at():]...)
	case "others":
		for k, x := range more.body {
			next.body[k] = x
		}
	case "header":
		next.body["a"] = rapid.StringN(0, 9, 20).Draw(rt, "header")
	}
	next.body[v.list()] = list
	return next
}

func drawThread(rt *rapid.T, api string) *thread {
	v := &thread{api: api}
	require.NoError(rt, json.Unmarshal([]byte(conversation(rt, api)), &v.body))
	return v
}

func (v *thread) String() string {
	data, err := json.Marshal(v.body)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestMemo compares renderings of conversations that grow, branch and change with renderings without a memo, for all
// templates at hand, while tenants, salts and sessions take turns and entries are evicted.
func TestMemo(t *testing.T) {
	list := pairs(t)
	echo, looking := echoModel(t), lookingModel(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.SampledFrom([]*prompt.Model{nil, echo, looking}).Draw(rt, "own")
		if m == nil {
			m = list[rapid.IntRange(0, len(list)-1).Draw(rt, "model")].values
		}
		checkMemo(rt, m, func(time.Time) {})
	})
}

// checkMemo runs the requests of conversations with a memo. at is called with the time of each.
func checkMemo(rt *rapid.T, m *prompt.Model, at func(time.Time)) {
	memo := prompt.NewMemo(rapid.SampledFrom([]int{1 << 15, 1 << 17, 1 << 20, 1 << 20}).Draw(rt, "limit"))
	threads := []*thread{drawThread(rt, rapid.SampledFrom(apis).Draw(rt, "api"))}
	for range rapid.IntRange(2, 12).Draw(rt, "requests") {
		v := threads[max(0, len(threads)-rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(rt, "thread"))]
		if rapid.IntRange(0, 9).Draw(rt, "new") == 0 {
			v = drawThread(rt, v.api)
		} else {
			v = v.evolve(rt)
		}
		threads = append(threads, v)
		if rapid.IntRange(0, 4).Draw(rt, "trim") == 0 {
			memo.Trim()
		}
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		turn := memo.Turn(pick("tenant", "a", "a", "a", "a", "b"), "", "")
		now := noon.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(rt, "days")) * 24 * time.Hour)
		at(now)
		sameWithMemo(rt, m, turn, v.api, pick("salt", "", "", "", "", "s"), pick("session", "", "x", "x", "y"), v.String(), now)
	}
}

// TestMemoFormats is TestMemo for the formats that are written in Go, with their variables.
func TestMemoFormats(t *testing.T) {
	now := noon
	var list []*prompt.Model
	for _, f := range []struct {
		name string
		vars variables
	}{
		{"harmony", nil}, {"harmony", variables{"auto_drop_analysis": false}}, {"harmony", variables{"style": "library"}},
		{"deepseek_v3_2", variables{"thinking": true}}, {"deepseek_v3_2", variables{"developer_is_system": true}},
		{"deepseek_v4", variables{"thinking": true}}, {"deepseek_v4", variables{"thinking": true, "drop_thinking": false}},
		{"deepseek_v41", variables{"thinking": true}}, {"deepseek_v41", nil},
		{"kimi_k3", nil}, {"mistral", nil},
	} {
		tpl, err := template.Lookup(f.name, &template.Options{Variables: f.vars, Now: func() time.Time { return now }})
		require.NoError(t, err)
		list = append(list, newModel(t, tpl, nil, prompt.Options{Tokenizer: ownTokenizer(t)}))
	}
	rapid.Check(t, func(rt *rapid.T) {
		checkMemo(rt, rapid.SampledFrom(list).Draw(rt, "model"), func(at time.Time) { now = at })
	})
}

// echoModel returns a model whose template reads messages in all the ways that a memo must follow.
func echoModel(t testing.TB) *prompt.Model {
	const source = `{%- set ns = namespace(last='', n=0, seen=[]) -%}
{%- set head = messages[0].content -%}
{%- macro show(m, mark) -%}<{{ m.role }}{{ mark }}{{ head if m.role == 'user' }}>{{ m.content }}{%- endmacro -%}
{%- for t in tools or [] %}{{ t | tojson }}{{ loop.index }}{% endfor -%}
{%- for m in messages[::-1] %}{{ loop.index0 }}{% if m.role == 'user' and not ns.last %}{% set ns.last = m.content %}{% set ns.n = messages|length - loop.index0 %}{% endif %}{% endfor -%}
{%- for message in messages -%}
{%- if loop.index0 > ns.n %}{% set after = '!' %}{% else %}{% set after = '' %}{% endif -%}
{{ show(message, after) }}{% if message.reasoning_content %}({{ message.reasoning_content }}){% endif -%}
{%- for c in message.tool_calls or [] %}[{{ loop.index }}{{ c.function.name }}={{ c.function.arguments | tojson }}]{% set ns.seen = ns.seen + [c.id] %}{% endfor -%}
{%- if not loop.last and messages[loop.index0 + 1].role == message.role %}+{% endif -%}
{%- if loop.previtem is defined and loop.previtem.role == 'tool' %}~{% endif -%}
{%- if message.role == 'tool' %}{{ messages|length }}{% endif -%}
{%- if message.role == 'system' %}{{ strftime_now('%d') }}{% endif -%}
{%- if message.role == 'user' %}{{ loop.length }}{% generation %}u{% endgeneration %}{% endif -%}
{%- if message.content == 'a' %}{% continue %}{% endif %};
{%- endfor -%}
{{ ns.seen | join(',') }}{% if add_generation_prompt %}>{% endif %}`
	return newModel(t, compiled(source)(t), nil, prompt.Options{Family: "hermes", Tokenizer: ownTokenizer(t)})
}

// lookingModel returns a model whose loops have effects and inputs that a memo cannot follow.
func lookingModel(t testing.TB) *prompt.Model {
	const source = `{%- set j = joiner('|') -%}{%- set cy = cycler('1', '2', '3') -%}{%- set ns = namespace(all=[]) -%}
{%- for message in messages recursive -%}
{%- set me = loop -%}{{ j() }}{{ cy.next() }}{{ loop.cycle('x', 'y') }}{% if loop.changed(message.role) %}{{ message.role }}{% endif %}{{ message.content }}
{%- for m in messages if m.role == 'user' %}{{ me.index }}{{ loop.index }}{% if loop.last %}.{% endif %}{% endfor -%}
{%- set ns.all = ns.all + [message] -%}{{ ns.all | length }}{{ messages[-1].role }}{{ (messages | selectattr('role', 'equalto', 'user') | list) | length }}
{%- set inner = namespace(k=loop.index0) %}{% set inner.k = inner.k + 1 %}{{ inner.k }}
{%- endfor -%}`
	return newModel(t, compiled(source)(t), nil, prompt.Options{Family: "hermes", Tokenizer: ownTokenizer(t)})
}

// ownTokenizer returns a small tokenizer.
func ownTokenizer(t testing.TB) *tokenizers.Tokenizer {
	m, err := loadMini()
	require.NoError(t, err)
	return m.Tokenizer()
}

// TestMemoConcurrent runs branches of conversations in parallel on one memo.
func TestMemoConcurrent(t *testing.T) {
	m := echoModel(t)
	memo := prompt.NewMemo(200 << 10)
	turns := 25
	if testing.Short() {
		turns = 10
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w%2), 0)) // two workers each have the same conversation
			list := []any{object{"role": "system", "content": "Answer."}}
			for i := range turns {
				list = append(list, object{"role": "user", "content": fmt.Sprint("question ", i, strings.Repeat("x", r.IntN(900)))})
				if i%3 == w%3 {
					list = append(list, object{"role": "assistant", "content": fmt.Sprint("answer ", w)})
				}
				body := (&thread{"chat", object{"model": "m", "messages": list}}).String()
				sameWithMemo(t, m, memo.Turn(fmt.Sprint(w/3), "", ""), "chat", "", fmt.Sprint(w%2), body, noon)
				if r.IntN(8) == 0 {
					memo.Trim()
				}
			}
		})
	}
	wg.Wait()
}

// TestMemoCounts checks that a Memo stays near its limit with bodies that take much more memory than their size: small values, and
// short bodies after long ones that begin like them.
func TestMemoCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	m, err := prompt.New(compiled(`{%- for m in messages -%}<{{ m.role }}>{{ m.content }}{%- endfor -%}`)(t), nil)
	require.NoError(t, err)
	more := strings.Repeat(`,{"role":"user","content":"","x":[`+strings.Repeat("0,", 2000)+`0]}`, 15)
	for _, short := range []bool{false, true} {
		const limit, n = 4 << 20, 60
		memo := prompt.NewMemo(limit)
		send := func(i int, more string) {
			body := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"%06d%s"}%s]}`, i, strings.Repeat("w", 400), more)
			turn := memo.Turn("tenant", "", fmt.Sprint(i))
			req, err := turn.Decode(wire.Messages, []byte(body), nil)
			require.NoError(t, err)
			_, err = turn.Render(m, req, noon)
			require.NoError(t, err)
		}
		before := heap()
		for i := range n {
			send(i, more)
			for k := 0; k <= i && short; k++ {
				send(k, "")
			}
		}
		kept := heap() - before
		require.Less(t, kept, int64(2*limit), "short: %v", short)
		runtime.KeepAlive(memo)
	}
}

// A request that names a cache salt is not decoded with the help of one that does not, wherever the two differ.
func TestMemoSalt(t *testing.T) {
	m, memo := echoModel(t), prompt.NewMemo(0)
	talk := strings.Repeat("say ", 3000)
	body := func(text, end string) []byte {
		return fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":%q},{"role":"user","content":%q}]%s}`, talk, text, end)
	}
	continues := func(body []byte) bool {
		turn := memo.Turn("", "", "")
		req, err := turn.Decode(wire.Chat, body, nil)
		require.NoError(t, err)
		used := prompt.Continues(turn)
		_, err = turn.Render(m, req, time.Now())
		require.NoError(t, err)
		return used
	}
	require.False(t, continues(body("a", "")))
	require.True(t, continues(body("a", `,"cache_s":1`)))
	require.True(t, continues(body("a", `,"my_salt":1,"cash_salt":2`)))
	for _, end := range []string{`,"cache_salt":"x"`, `,"a_salt":1,"cache_salt":"x"`, `,"cache_sa":1,"cache_salt":"x"`, `,"a_cache_salt":"x","cache_s":1`} {
		require.False(t, continues(body("a", end)), end)
		require.False(t, continues(body("a", end)), "the earlier request names it too")
		require.True(t, continues(body("b", "")), end)
	}
}

// TestMemoEviction adds conversations until the memo is full many times over.
func TestMemoEviction(t *testing.T) {
	m := echoModel(t)
	limit, conversations := 4<<20, 2000
	if testing.Short() {
		limit, conversations = 512<<10, 250
	}
	memo := prompt.NewMemo(limit)
	most := 0
	for i := range conversations {
		body := (&thread{"chat", object{"model": "m", "messages": []any{
			object{"role": "user", "content": fmt.Sprintf("conversation %04d%s", i, strings.Repeat(" word", 400))}, object{"role": "assistant", "content": "yes"},
		}}}).String()
		turn := memo.Turn("", "", fmt.Sprintf("%04d", i))
		req, err := turn.Decode(wire.Chat, []byte(body), nil)
		require.NoError(t, err)
		p, err := turn.Render(m, req, noon)
		require.NoError(t, err)
		p.IDs()
		n, size := memo.Len()
		require.LessOrEqual(t, size, limit)
		most = max(most, n)
	}
	n, size := memo.Len()
	require.Equal(t, most, n, "it stays full")
	require.Greater(t, size, limit*9/10)
	require.Less(t, n, conversations)
}

// TestMemoBoundaries checks that the tokens before a mark are found without decoding if the last prompt had the mark.
func TestMemoBoundaries(t *testing.T) {
	const source = `{%- for m in messages -%}<{{ m.role }}>{{ m.content }}{%- endfor -%}`
	m := newModel(t, compiled(source)(t), nil, prompt.Options{Family: "hermes", Tokenizer: ownTokenizer(t)})
	memo := prompt.NewMemo(0)
	list := []any{object{"role": "user", "content": []any{object{"type": "text", "text": "a question", "cache_control": object{"type": "ephemeral"}}}}}
	for n := range 4 {
		list = append(list, object{"role": "assistant", "content": "an answer"}, object{"role": "user", "content": "more"})
		if n == 3 {
			list[0].(object)["content"].([]any)[0].(object)["text"] = "another question"
		}
		body := (&thread{"messages", object{"model": "m", "max_tokens": 9, "messages": list}}).String()
		turn := memo.Turn("", "", "s")
		req, err := turn.Decode(wire.Messages, []byte(body), nil)
		require.NoError(t, err)
		p, err := turn.Render(m, req, noon)
		require.NoError(t, err)
		ids := p.IDs()
		require.Equal(t, n > 0 && n < 3, p.Boundaries() > 0, n)
		marks, faults := p.Breakpoints(req)
		require.Empty(t, faults)
		require.Len(t, marks, 1)
		require.Equal(t, p.Tokens(m.Tokenizer(), marks, slices.Clone(ids)), p.Tokens(m.Tokenizer(), marks, ids))
		require.Equal(t, 1, p.Boundaries())
	}
}

// TestIDList checks that the printed ids of a prompt do not change when later prompts and branches of the conversation are printed,
// and that nothing can be appended to them in place.
func TestIDList(t *testing.T) {
	m, err := prompt.Load(mini.FS(), &prompt.Options{Family: "hermes", Window: 1 << 20})
	require.NoError(t, err)
	memo := prompt.NewMemo(0)
	var lists [][]byte
	var wants []string
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("one two three ", 50) + `"}`
	for i := range 20 {
		next := fmt.Sprintf(`%s,{"role":"assistant","content":"answer %d"},{"role":"user","content":"more"}`, body, i)
		turn := memo.Turn("", "", "")
		req, err := turn.Decode(wire.Chat, []byte(next+"]}"), nil)
		require.NoError(t, err)
		p, err := turn.Render(m, req, noon)
		require.NoError(t, err)
		list := p.IDList()
		_ = append(list, '9')
		want, err := json.Marshal(p.IDs())
		require.NoError(t, err)
		lists, wants = append(lists, list), append(wants, string(want))
		if i%3 > 0 { // otherwise the next one is a branch
			body = next
		}
	}
	for i := range lists {
		require.Equal(t, wants[i], "["+string(lists[i])+"]")
	}
	require.Empty(t, m.Raw(nil).IDList())
}
