// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// This file observes which past reasoning a template prints. It renders conversations in which the reasoning of each
// message has a distinct word, and records the printed words.

// talks lists the conversations. u is a question, a a response without calls, c one with a call, t its result. The
// reasoning of the n-th message of the assistant is the n-th word of thoughts.
var talks = [...]string{"uau", "uct", "uctau", "uctu", "uctct", "uauct", "uauau", "ua"}

// thoughts lists words of which no one contains another.
var thoughts = [...]string{"Zqfirst", "Zqsecond"}

// seen is the set of words printed in the talks: one bit per word, two per talk.
type seen struct{ shown, known uint32 }

// String lists the conversations with the turns whose reasoning was printed.
func (s seen) String() string {
	var list []string
	for i, talk := range talks {
		b, n := []byte(talk), 0
		if s.known>>(2*i)&3 == 0 {
			continue // it could not be rendered
		}
		for at := range b {
			if b[at] != 'a' && b[at] != 'c' {
				continue
			}
			if s.shown>>(2*i+n)&1 != 0 {
				b[at] -= 'a' - 'A'
			}
			n++
		}
		list = append(list, string(b))
	}
	return strings.Join(list, " ")
}

func kwarg(name string, value bool) string { return fmt.Sprintf(`{"%s":%t}`, name, value) }

// transcript encodes the conversations of talks.
type transcript struct {
	key  string // of the reasoning; "" for reasoning inside the content
	form string // of arguments
	flat bool
	mute bool // the messages have no reasoning
}

// message returns a message of the assistant.
func (w transcript) message(call bool, thought, text string) string {
	think := `"` + w.key + `":"` + thought + `",`
	if w.mute {
		think = ""
	} else if w.key == "" {
		think, text = "", `<think>\n`+thought+`\n</think>\n\n`+text
	}
	if call {
		return probeCall(think+`"content":"`+text+`",`, w.flat, w.form)
	}
	return `{"role":"assistant",` + think + `"content":"` + text + `"}`
}

// messages returns the JSON messages of talk, separated by commas.
func (w transcript) messages(talk string) string {
	var list []string
	n := 0
	for i := range len(talk) {
		switch talk[i] {
		case 'u':
			list = append(list, `{"role":"user","content":"Zquser`+string(rune('0'+i))+`"}`)
		case 't':
			list = append(list, strings.TrimPrefix(probeResult, ","))
		default:
			text := "Zqanswer"
			if talk[i] == 'c' {
				text = ""
			}
			list = append(list, w.message(talk[i] == 'c', thoughts[n], text))
			n++
		}
	}
	return strings.Join(list, ",")
}

// watch returns the words of the talks that are printed.
func (p prober) watch(w transcript, tools, kwargs string) (s seen) {
	for i, talk := range talks {
		text, ok := p.try(w.messages(talk), tools, kwargs, true)
		if !ok {
			continue
		}
		for n := range strings.Count(talk, "a") + strings.Count(talk, "c") {
			s.known |= 1 << (2*i + n)
			if strings.Contains(text, thoughts[n]) {
				s.shown |= 1 << (2*i + n)
			}
		}
	}
	return s
}

// historySwitches are the known variables that change which past reasoning is printed.
var historySwitches = []string{
	"preserve_thinking", "clear_thinking", "truncate_history_thinking", "keep_past_thinking", "drop_thinking", "auto_drop_analysis",
}

// untagged removes white space and the tags of reasoning.
var untagged = strings.NewReplacer(func() []string {
	list := []string{" ", "", "\n", ""}
	for _, o := range openers {
		list = append(list, o, "", closer(o), "")
	}
	return list
}()...)

// history returns the variables that change which past reasoning is printed and nothing else, the known ones first.
func (p prober) history(c *Capabilities, w transcript, on string) (names []string) {
	plain, chain := w.messages("uau"), w.messages("uctau")
	mute := transcript{form: w.form, flat: w.flat, mute: true}
	rest := func(name string, value bool) string { // what is printed besides reasoning
		kwargs := merged(on, kwarg(name, value))
		open, _ := p.try(mute.messages("uctau"), probeTools, kwargs, true)
		closed, _ := p.try(mute.messages("ua"), probeTools, kwargs, false)
		return untagged.Replace(open + closed)
	}
	shown := func(name string, value bool) (words [4]bool, ok bool) {
		kwargs := merged(on, kwarg(name, value))
		first, ok1 := p.try(plain, "", kwargs, true)
		second, ok2 := p.try(chain, probeTools, kwargs, true)
		for i, thought := range thoughts {
			words[i], words[2+i] = strings.Contains(first, thought), strings.Contains(second, thought)
		}
		return words, ok1 || ok2
	}
	for _, name := range p.vars {
		turns := slices.ContainsFunc(c.reasoningSwitches, func(s setting) bool { return s.name == name })
		if turns || name == c.effortVariable {
			continue
		}
		yes, ok1 := shown(name, true)
		if no, ok2 := shown(name, false); !ok1 || !ok2 || yes == no {
			continue
		}
		if rest(name, true) == rest(name, false) {
			names = append(names, name)
		}
	}
	rank := func(name string) int {
		return (slices.Index(historySwitches, name) + len(historySwitches)) % (len(historySwitches) + 1)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}

// reasoning sets the fields and features of c for past reasoning.
func (p prober) reasoning(c *Capabilities, form string, flat bool) {
	w := transcript{form: form, flat: flat}
	inline := w.messages("uau")
	if text, ok := p.try(inline, "", "", true); ok {
		c.stripsInline = strings.Contains(text, "Zqanswer") && !strings.Contains(text, thoughts[0])
	}
	on := "" // the variables with which reasoning is on
	find := func(kwargs string) bool {
		for _, key := range []string{reasoningKeys[0], reasoningKeys[1], reasoningKeys[2], ""} {
			w.key = key
			if key == "" && p.doubles(w, kwargs) {
				continue
			}
			s := p.watch(w, "", kwargs)
			if s.shown == 0 && c.tools {
				s = p.watch(w, probeTools, kwargs)
			}
			if s.shown != 0 {
				c.reasoningKey, c.reasoningInline, on = key, key == "", kwargs
				return true
			}
		}
		return false
	}
	// A template that prints content unchanged also prints reasoning in it, so that form is only used if no other
	// works.
	found := find("")
	if s := c.reasoningSwitch(); s.name != "" && (!found || c.reasoningInline || c.offByDefault) {
		was, key, inline := w, c.reasoningKey, c.reasoningInline
		if find(s.kwargs(true)) && (!c.reasoningInline || inline && c.offByDefault) {
			c.offByDefault = true
		} else {
			w, on, c.reasoningKey, c.reasoningInline = was, "", key, inline
		}
	}
	if c.reasoningKey == "" && !c.reasoningInline {
		return
	}
	if c.reasoningInline {
		w.key = ""
	}
	kinds := func(kwargs string) (plain, tools seen) {
		plain = p.watch(w, "", kwargs)
		if tools = plain; c.tools {
			tools = p.watch(w, probeTools, kwargs)
		}
		return plain, tools
	}
	plain, tools := kinds(on)
	c.pastReasoning = plain.String()
	note := func(key string, s, like seen) {
		if s != like {
			c.pastReasoning += "; " + key + ": " + s.String()
		}
	}
	note("tools", tools, plain)
	if c.reasoningSwitch().name != "" {
		off := c.reasoningSwitch().kwargs(false)
		plainOff, toolsOff := kinds(off)
		note("off", plainOff, plain)
		note("off tools", toolsOff, tools)
		if c.reasoningKey != "" {
			question, result := w.messages("u"), strings.TrimPrefix(probeResult, ",")
			first, ok := p.try(question, probeTools, off, true)
			grows := func(thought string) bool {
				text, ok := p.try(question+","+w.message(true, thought, "")+","+result, probeTools, off, true)
				return ok && strings.HasPrefix(text, first)
			}
			c.blankReasoning = ok && !grows("") && grows(`\n`)
		}
	}
	for _, name := range p.history(c, w, on) {
		wide, _ := kinds(merged(on, kwarg(name, true)))
		narrow, _ := kinds(merged(on, kwarg(name, false)))
		keep := bits.OnesCount32(wide.shown) >= bits.OnesCount32(narrow.shown)
		if !keep {
			wide, narrow = narrow, wide
		}
		if wide != narrow {
			c.pastReasoning += fmt.Sprintf("; %s=%t: %v; %s=%t: %v", name, keep, wide, name, !keep, narrow)
			break
		}
	}
	c.omittedReasoning = p.left(w, on)
	if c.reasoningKey != "" {
		_, alone := p.try(w.messages("uct"), probeTools, on, true)
		_, both := p.try(w.messages("u")+","+w.message(true, thoughts[0], "Zqanswer")+probeResult, probeTools, on, true)
		c.reasoningOrText = alone && !both
	}
	closes := func(tail, printed string) bool {
		text, ok := p.try(w.messages("u")+","+w.message(true, thoughts[0]+tail, "")+probeResult, probeTools, on, true)
		_, rest, found := strings.Cut(text, thoughts[0])
		return ok && found && slices.ContainsFunc(openers, func(o string) bool { return strings.HasPrefix(rest, printed+closer(o)) })
	}
	c.closesDirectly = c.reasoningKey != "" && closes("", "") && closes(`\n`, "\n")
	alone, ok := p.try(w.messages("ct"), probeTools, on, true)
	c.reasoningNoUser = ok && strings.Contains(alone, thoughts[0])
	asks := func(role string) bool {
		chain := w.messages("uct")
		before, ok1 := p.try(chain, probeTools, on, true)
		after, ok2 := p.try(chain+`,{"role":"`+role+`","content":"Zqmore"}`, probeTools, on, true)
		return ok1 && ok2 && strings.Contains(before, thoughts[0]) && strings.Contains(after, "Zqmore") && !strings.Contains(after, thoughts[0])
	}
	c.systemAsks, c.developerAsks = asks("system"), asks("developer")
	if c.reasoningKey != "" && c.parallelCalls {
		m := probeCall(`"`+w.key+`":["Zqone","Zqtwo",""],"content":"",`, flat, form, strings.ReplaceAll(form, "Zqvalue", "Zqother"))
		text, ok := p.try(probeUser+m+probeResult+strings.ReplaceAll(probeResult, "001", "002"), probeTools, on, true)
		c.reasoningSegments = ok && inOrder(text, []string{"Zqone", "Zqvalue", "Zqtwo", "Zqother"})
	}
}

// doubles reports whether the template prints an empty block of reasoning before reasoning in the content.
func (p prober) doubles(w transcript, kwargs string) bool {
	for _, talk := range talks {
		text, _ := p.try(w.messages(talk), "", kwargs, true)
		before, _, ok := strings.Cut(text, thoughts[0])
		before, tag := strings.CutSuffix(strings.TrimRight(before, "\n"), openers[0])
		if ok && tag && strings.HasSuffix(strings.TrimRight(before, "\n"), closer(openers[0])) {
			return true
		}
	}
	return false
}

// left returns the tags printed instead of omitted reasoning.
func (p prober) left(w transcript, kwargs string) string {
	text, ok := p.try(w.messages("uau"), "", kwargs, true)
	if !ok || strings.Contains(text, thoughts[0]) {
		return ""
	}
	_, text, _ = strings.Cut(text, "Zquser0")
	text, _, ok = strings.Cut(text, "Zqanswer")
	if !ok {
		return ""
	}
	from, to := len(text), 0
	for _, o := range openers {
		for _, tag := range []string{o, closer(o)} {
			if i := strings.Index(text, tag); i >= 0 {
				from, to = min(from, i), max(to, strings.LastIndex(text, tag)+len(tag))
			}
		}
	}
	return text[min(from, to):to]
}

// closer returns the tag that ends what an opener begins.
func closer(opener string) string {
	switch opener {
	case "<|channel>thought":
		return "<channel|>"
	case "<|START_THINKING|>":
		return "<|END_THINKING|>"
	case "<|inner_prefix|>":
		return "<|inner_suffix|>"
	case "◁think▷":
		return "◁/think▷"
	}
	return opener[:1] + "/" + opener[1:]
}
