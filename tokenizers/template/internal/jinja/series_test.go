// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// seriesTemplates have loops whose turns depend on each other and on their positions in various ways. The first one is
// the loops of Qwen3.
var seriesTemplates = map[string]string{
	"qwen3": `{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not message.content.startswith('m1') %}
        {%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" or message.role == "system" and not loop.first %}<{{ message.role }}>{{ message.content }}
    {%- elif message.role == "assistant" %}
        {%- if loop.index0 > ns.last_query_index %}{% if loop.last %}!{% endif %}[{{ message.content }}]{% else %}({{ message.content }}){% endif %}
    {%- elif message.role == "tool" %}
        {%- if loop.first or messages[loop.index0 - 1].role != "tool" %}<results>{% endif %}{{ message.content }}
        {%- if loop.last or messages[loop.index0 + 1].role != "tool" %}</results>{% endif %}
    {%- endif %}
{%- endfor %}`,
	"flags": `{% set ns = namespace(open=false, n=0, last='') %}{% for m in messages %}{% if m.role == 'tool' and not ns.open %}{% set ns.open = true %}<{% elif m.role != 'tool' and ns.open %}{% set ns.open = false %}>{% endif -%}
{{ m.content }}{% if m.role == 'user' %}{% generation %}{{ ns.last }}{% endgeneration %}{% set ns.last = m.content %}{% endif %}{% if m.role == 'system' %}{% continue %}{% endif %}.{% else %}none{% endfor %}{{ ns.open }}`,
	"count":  `{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ m.role }}{% endfor %}{{ ns.n }}`,
	"break":  `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{% break %}{% endif %}{{ m.content }}{{ loop.length if m.role == 'user' }}{% endfor %}`,
	"twice":  `{% set ns = namespace(s='') %}{% for m in messages + messages %}{{ m.content }}{% if m.role == 'user' %}{% set ns.s = m.content %}{% else %}{{ ns.s }}{% endif %}{% endfor %}`,
	"rest":   `{% set rest = messages[1:] %}{% for m in rest %}{{ m.content }}{% if not loop.last and rest[loop.index0 + 1].role == m.role %}+{% endif %}{{ rest[-1].role if m.role == 'user' }}{% if loop.previtem is defined and m.role == 'tool' %}{{ loop.previtem.role }}{% endif %}{{ messages[0].content if m.role == 'tool' }}{% endfor %}`,
	"nested": `{% for m in messages %}{% set k = loop.index0 + messages|length - 1 %}{% set i = loop.index %}{% for c in m.content %}{{ loop.index }}{{ i if c == 'm' }}{{ k if c == '7' }}{% endfor %}{% set loop = 'x' %}{% set j = loop.index0 %}{{ j if m.role == 'system' }}{% endfor %}`,
	"errors": `{% for m in messages %}{% set n = messages|length - 40 %}{% if m.content == 'm3' and loop.index0 > n %}{{ raise_exception('three') }}{% endif %}{{ m.content }}{% endfor %}`,
}

// history is a list of messages that changes. Elements that stay the same keep their values, as in the memo of a session.
type history struct {
	b    Builder
	list *Origin
	seen map[string]*Dict
	text []string
}

func newHistory() *history { return &history{list: Root("messages"), seen: map[string]*Dict{}} }

func (h *history) messages(tb testing.TB) *List {
	items := make([]Value, len(h.text))
	for i, s := range h.text {
		key := fmt.Sprint(i, s)
		if h.seen[key] == nil {
			v, err := h.b.Parse([]byte(s), "m", h.list.Element(i))
			if err != nil {
				tb.Fatal(err)
			}
			h.seen[key] = v.(*Dict)
		}
		items[i] = h.seen[key]
	}
	return h.list.List(items)
}

func (h *history) change(r *rand.Rand) {
	message := func() string {
		return fmt.Sprintf(`{"role":%q,"content":"m%d"}`, []string{"user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "system"}[r.IntN(8)], r.IntN(20))
	}
	n := len(h.text)
	switch k := r.IntN(24); {
	case k == 0 && n > 0:
		h.text = slices.Clone(h.text)
		h.text[r.IntN(n)] = message()
	case k == 1 && n > 1:
		i := r.IntN(n)
		h.text = slices.Delete(slices.Clone(h.text), i, i+1)
	case k == 2 && n > 1:
		h.text = h.text[: n-r.IntN(min(n, 9)) : n]
	case k == 3:
		h.text = slices.Insert(slices.Clone(h.text), r.IntN(n+1), message())
	case k < 8:
		for range 20 {
			h.text = append(h.text[:len(h.text):len(h.text)], message())
		}
	default:
		for range 1 + r.IntN(3) {
			h.text = append(h.text[:len(h.text):len(h.text)], message())
		}
	}
}

// TestSeries renders conversations that grow and change, with a memo and without. Branches continue from an earlier memo.
func TestSeries(t *testing.T) {
	rounds := testsize.Pick(3, 12, 100)
	for name, source := range seriesTemplates {
		tpl, err := Compile(name, source)
		if err != nil {
			t.Fatal(name, err)
		}
		for seed := range rounds {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			h := newHistory()
			memos, segs, texts := []*Memo{nil}, [][]Segment{nil}, []string{""}
			for step := range 70 {
				h.change(r)
				in := Input{Vars: []Var{{"messages", h.messages(t)}}, Now: time.Now}
				if r.IntN(10) == 0 {
					in.MaxText = 1 + r.IntN(600)
				}
				want, wantErr := tpl.Render(in)
				in.Remember, in.Memo = true, memos[max(0, len(memos)-1-r.IntN(8)/6)]
				if in.Expect = r.IntN(4) * r.IntN(9000); r.IntN(6) == 0 {
					in.Memo = nil
				}
				got, err := tpl.Render(in)
				if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
					t.Fatalf("%s, seed %d, step %d: error %v, want %v", name, seed, step, err, wantErr)
				}
				if err != nil {
					continue
				}
				if got.Text != want.Text || !slices.Equal(got.Segs, want.Segs) || !slices.Equal(got.Generations, want.Generations) {
					t.Fatalf("%s, seed %d, step %d: got\n%q\n%v\nwant\n%q\n%v", name, seed, step, got.Text, got.Segs, want.Text, want.Segs)
				}
				memos, segs, texts = append(memos, got.Memo), append(segs, slices.Clone(got.Segs)), append(texts, want.Text)
			}
			for i, m := range memos[1:] {
				if !slices.Equal(m.segs, segs[i+1]) || m.text.String() != texts[i+1] {
					t.Fatalf("%s, seed %d: output %d was changed by a later one", name, seed, i)
				}
			}
		}
	}
}

// TestSeriesLarge checks that a conversation that grows by two messages runs few turns again, however long it is, and
// that its turns are in few series.
func TestSeriesLarge(t *testing.T) {
	source := seriesTemplates["qwen3"]
	if data, err := os.ReadFile("../../../../../shared/tok/qwen3/chat_template.jinja"); err == nil {
		source = string(data)
	}
	tpl, err := Compile("t", source)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory()
	h.text = append(h.text, `{"role":"user","content":"question"}`)
	var memo *Memo
	for n := range 400 {
		h.text = append(h.text, fmt.Sprintf(`{"role":"assistant","content":"a%d"}`, n), fmt.Sprintf(`{"role":"tool","content":"t%d"}`, n))
		out, err := tpl.Render(Input{Vars: []Var{{"messages", h.messages(t)}}, Remember: true, Memo: memo})
		if err != nil {
			t.Fatal(err)
		}
		if n > 10 {
			for i, l := range out.Memo.loops {
				fresh := 0
				for k := range l.records {
					if before := memo.loops[i].get(k); before.record != l.records[k].record {
						fresh++
					}
				}
				if fresh > 5 {
					t.Fatalf("%d messages: loop %d ran %d turns again", len(h.text), i, fresh)
				}
				same := 0
				for _, q := range l.series {
					if slices.ContainsFunc(memo.loops[i].series, func(o placedSeries) bool { return o.series == q.series }) {
						same += q.turns
					}
				}
				if rest := len(h.text) - same; rest > 2*maxTurns {
					t.Fatalf("%d messages: loop %d did not replay %d of them in series", len(h.text), i, rest)
				}
				if most := 12 + 2*len(h.text)/maxTurns; len(l.series) > most {
					t.Fatalf("%d messages: loop %d has %d series", len(h.text), i, len(l.series))
				}
			}
		}
		memo = out.Memo
	}
}

// TestSeriesStale checks that turns that were run again although their elements are the same are in no series, until they
// have been replayed once.
func TestSeriesStale(t *testing.T) {
	tpl, err := Compile("t", `{% for m in messages %}{{ m.content }}{{ x }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory()
	for range 3 {
		h.text = append(h.text, `{"role":"user","content":"question"}`)
	}
	messages := h.messages(t)
	var memo *Memo
	for i, step := range []struct{ x, series int }{{1, 1}, {2, 0}, {2, 1}, {2, 1}, {3, 0}} {
		out, err := tpl.Render(Input{Vars: []Var{{"messages", messages}, {"x", int64(step.x)}}, Remember: true, Memo: memo})
		if err != nil {
			t.Fatal(err)
		}
		if memo = out.Memo; len(memo.loops[0].series) != step.series {
			t.Fatalf("rendering %d has %d series, want %d", i, len(memo.loops[0].series), step.series)
		}
	}
}
