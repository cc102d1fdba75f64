// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// vector is a case of a peer's own tests.
type vector struct {
	ID, Family, Kind, Text string
	Chunks                 []string
	EOF                    *bool // false where the peer's test leaves the stream open
	Tools                  []tool
	Options                struct {
		Think       *bool
		Parser      struct{ HasThinkingSupport bool }         `json:"parser_cfg"`
		Calls       []string                                  // smg: methods called before the text
		LastMessage *struct{ Role, Content, Thinking string } `json:"last_message"`
	}
	Expected struct {
		Ollama  *peerResult
		SMG     *smgResult
		Harmony *struct {
			Messages []struct{ Text, Channel, Recipient string }
		}
	}
}

// smgResult is the part of a result that a test of smg fixes; the rest is open.
type smgResult struct {
	Calls              *int     `json:"ncalls"`
	Names              [][2]any `json:"names"`
	Args               [][3]any `json:"args_at"`
	Content, Reasoning *string  //
	Steps              [][3]any // chunk, "content" or "reasoning", text
}

// TestOllama compares with the tests of Ollama's parsers.
func TestOllama(t *testing.T) {
	runVectors(t, "ollama", func(t *testing.T, v *vector, got outcome) string {
		return diffTrimmed(v.Expected.Ollama.outcome(t), got)
	})
}

// TestHarmonyVectors compares with the tests of openai/harmony.
func TestHarmonyVectors(t *testing.T) {
	runVectors(t, "harmony", func(t *testing.T, v *vector, got outcome) string {
		want := outcome{Calls: []step{}}
		for _, m := range v.Expected.Harmony.Messages {
			switch {
			case m.Recipient != "":
				want.Calls = append(want.Calls, step{"call", strings.TrimPrefix(m.Recipient, "functions."), decoded(t, []byte(m.Text))})
			case m.Channel == "analysis":
				want.Reasoning += m.Text
			default:
				want.Content += m.Text
			}
		}
		return diffTrimmed(want, got)
	})
}

// TestSMG compares with what the tests of smg pin.
func TestSMG(t *testing.T) {
	runVectors(t, "smg", func(t *testing.T, v *vector, got outcome) string { return v.Expected.SMG.diff(got, v.Chunks != nil) })
}

// diffTrimmed compares with a peer that trims text and reasoning.
func diffTrimmed(want, got outcome) string { return differ(want, got, strings.TrimSpace) }

// diff returns the first thing that r pins and got has not. In a streamed test the ordinal of a call is that within its chunk.
func (r *smgResult) diff(got outcome, streamed bool) string {
	if r.Calls != nil && *r.Calls != len(got.Calls) {
		return fmt.Sprintf("%d calls, not %d: %v", len(got.Calls), *r.Calls, got.Calls)
	}
	call := func(i any) (step, bool) {
		n := int(i.(float64))
		if n >= len(got.Calls) {
			return nil, false
		}
		return got.Calls[n], true
	}
	for _, n := range r.Names {
		if streamed && slices.ContainsFunc(got.Calls, func(c step) bool { return c[1] == n[1] }) {
			continue
		}
		if c, ok := call(n[0]); !ok || c[1] != n[1] {
			return fmt.Sprintf("call %v is not to %v: %v", n[0], n[1], got.Calls)
		}
	}
	for _, a := range r.Args {
		c, ok := call(a[0])
		if !ok {
			return fmt.Sprintf("no call %v: %v", a[0], got.Calls)
		}
		// Numbers are floats on both sides.
		raw, _ := json.Marshal(c[2])
		var val any
		_ = json.Unmarshal(raw, &val)
		for _, key := range a[1].([]any) {
			switch k := key.(type) {
			case string:
				m, _ := val.(map[string]any)
				val = m[k]
			case float64:
				l, _ := val.([]any)
				if int(k) < len(l) {
					val = l[int(k)]
				}
			}
		}
		if !reflect.DeepEqual(a[2], val) {
			return fmt.Sprintf("argument %v of call %v is %#v, not %#v", a[1], a[0], val, a[2])
		}
	}
	want := got
	if r.Content != nil {
		want.Content = *r.Content
	}
	if r.Reasoning != nil {
		want.Reasoning = *r.Reasoning
	}
	if len(r.Steps) > 0 {
		want.Content, want.Reasoning = "", ""
		for _, s := range r.Steps {
			if text := s[2].(string); s[1] == "content" {
				want.Content += text
			} else {
				want.Reasoning += text
			}
		}
	}
	return diffTrimmed(want, got)
}

// onlyBlanks reports whether two outcomes differ in the white space of text and reasoning alone.
func onlyBlanks(a, b outcome) bool {
	return differ(a, b, unblanked) == ""
}

// unblanked returns s without white space.
func unblanked(s string) string { return strings.Join(strings.FieldsFunc(s, unicode.IsSpace), "") }

// runVectors compares every vector of a file whose family is built. A difference must have an explanation in the tables
// of the peer, and an explanation must have a difference.
func runVectors(t *testing.T, peer string, diff func(*testing.T, *vector, outcome) string) {
	byFamily := load(t, shared(t, "corpus", "parsers", peer+".jsonl"), func(v *vector) string { return v.Family })
	table := explained[peer]
	for family, list := range byFamily {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			if !built(family) {
				t.Skipf("%s is not built: %d vectors", family, len(list))
			}
			used, right, count := map[string]bool{}, 0, map[reason]int{}
			var c event.Collector
			for _, v := range list {
				p, err := parsers.New(family, v.options(peer))
				require.NoError(t, err)
				feed(t, p, &c, v.Text+strings.Join(v.Chunks, ""))
				if v.EOF == nil || *v.EOF {
					evs, err := p.Finish(nil, event.None)
					require.NoError(t, err)
					c.Add(evs...)
				}
				got := outcome{Calls: []step{}}
				if len(c.Answers) > 0 {
					got = flat(t, c.Answers[0])
				}
				d := diff(t, v, got)
				if d == "" {
					right++
					continue
				}
				why, pattern := explain(table, strings.TrimPrefix(v.ID, peer+"/"), family)
				switch {
				case why != "":
					used[pattern] = true
				case v.Expected.Ollama != nil && v.Expected.Ollama.Error != "":
					why = givesUp
				case v.Expected.Ollama != nil && onlyBlanks(v.Expected.Ollama.outcome(t), got):
					why = trimsBlanks
				default:
					t.Errorf("%s, %q:\n%s", v.ID, clip(v.Text+strings.Join(v.Chunks, "¦")), d)
					continue
				}
				checkReason(t, v.ID, why)
				count[why]++
			}
			for pattern, why := range table {
				if (pattern == family || strings.HasPrefix(pattern, family+"/")) && !used[pattern] {
					t.Errorf("nothing differs by %s, which the table explains by %s", pattern, why)
				}
			}
			t.Logf("%s: %d vectors, %d equal, %v", family, len(list), right, count)
		})
	}
}

// explain finds the reason for a vector: the reason of its id, or of the longest prefix of whole path elements that has
// one.
func explain(table map[string]reason, id, family string) (reason, string) {
	if !strings.HasPrefix(id, family+"/") {
		id = family + "/" + id
	}
	for {
		if why, ok := table[id]; ok {
			return why, id
		}
		cut := strings.LastIndexByte(id, '/')
		if cut < 0 {
			return "", ""
		}
		id = id[:cut]
	}
}

// options returns how the peer's test set up its parser, in weft's terms.
func (v *vector) options(peer string) *parsers.Options {
	opt := &parsers.Options{Tools: toolsOf(v.Tools), Start: startOf("none")}
	switch peer {
	case "ollama":
		opt.Start = v.ollamaStart()
	case "smg":
		if len(v.Options.Calls) > 0 || smgStartsInReasoning[v.Family] {
			opt.Start = startOf("reasoning")
		}
	}
	return opt
}

// smgStartsInReasoning lists the families whose parsers in smg start inside reasoning.
var smgStartsInReasoning = map[string]bool{
	"deepseek_r1": true, "step3": true, "minimax": true, "qwen3_thinking": true,
}

// ollamaThinks lists the families that Ollama lets think unless told otherwise.
var ollamaThinks = map[string]bool{"cohere": true, "glm47": true, "olmo3_think": true}

// ollamaStart returns where the templates of Ollama let generation begin. Where thinking is on they open it, and where
// it is off they open and close it, unless the conversation ends in a response to continue.
func (v *vector) ollamaStart() parsers.Start {
	last := v.Options.LastMessage
	if last != nil && last.Role == "assistant" && last.Content != "" && v.Family != "laguna_v8" { // that begins a new turn
		return startOf("response")
	}
	switch think := v.Options.Think; {
	case v.Family == "muse_glimmer", v.Family == "lfm2": // the template ends before the first header, or tag
		return startOf("none")
	case think == nil && (ollamaThinks[v.Family] || v.Family == "qwen3_vl" && v.Options.Parser.HasThinkingSupport):
		return startOf("reasoning")
	case think == nil && v.Family == "qwen3_vl":
		return startOf("response")
	case think == nil:
		return startOf("none")
	case *think:
		return startOf("reasoning")
	}
	return startOf("response")
}
