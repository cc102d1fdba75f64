// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"strings"
)

// This file finds the variables of a template that determine whether and how much the model reasons in its response.

// A setting is a variable with the JSON values that turn reasoning on and off. The zero setting means that there is no
// such variable.
type setting struct{ name, on, off string }

// kwargs returns the variable with one of its values as a JSON object, or "" for the zero setting.
func (s setting) kwargs(on bool) string {
	switch {
	case s.name == "":
		return ""
	case on:
		return `{"` + s.name + `":` + s.on + `}`
	}
	return `{"` + s.name + `":` + s.off + `}`
}

// merged returns the members of two JSON objects, either of which may be "".
func merged(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a[:len(a)-1] + "," + b[1:]
}

// pairs are values that turn reasoning on and off, in the templates of today's models.
var pairs = [...]struct {
	on, off string
	word    bool // of a variable with other values as well, such as adaptive
}{
	{"true", "false", false}, // most
	{"-1", "0", false},       // thinking_budget of Seed-OSS
	{`"enabled"`, `"disabled"`, true},
	{`"on"`, `"off"`, true},
	{`"think"`, `"no_think"`, true},
	{`"/think"`, `"/no_think"`, true},
}

// switches finds the variables that turn reasoning on and off, those for effort and budget, and the default.
func (p prober) switches(c *Capabilities, user, form string, flat bool) {
	think := ""
	for _, key := range reasoningKeys {
		think += `"` + key + `":"Zqthought",`
	}
	chain := probeUser + probeCall(think+`"content":"",`, flat, form) + probeResult
	both := func(kwargs string) (text string, ok bool) {
		text, ok = p.try(user, "", kwargs, true)
		more, _ := p.try(chain, probeTools, kwargs, true)
		return text + "\x00" + more, ok
	}
	p.booleans(c, both)
	p.effort(c, user)
	p.words(c, user)
	p.budget(c, user)
	s := c.reasoningSwitch()
	if s.name == "" {
		return
	}
	if open, ok := p.generation(user, s.kwargs(false)); ok {
		c.switchedOff = open
	}
	absent, _ := both("")
	on, _ := both(s.kwargs(true))
	off, _ := both(s.kwargs(false))
	c.offByDefault = absent == off && on != off
	c.undecided = absent != off && absent != on
}

// generation returns the generation prompt with variables.
func (p prober) generation(user, kwargs string) (text string, ok bool) {
	closed, ok1 := p.try(user, "", kwargs, false)
	open, ok2 := p.try(user, "", kwargs, true)
	text, _ = strings.CutPrefix(open, closed)
	return text, ok1 && ok2
}

// booleans finds the switches enable_thinking and thinking, which may only change the system prompt or a chain of calls.
func (p prober) booleans(c *Capabilities, both func(kwargs string) (string, bool)) {
	names := []string{"enable_thinking", "thinking"}
	if mixed, ok := both(`{"enable_thinking":true,"thinking":false}`); ok {
		if off, ok := both(kwarg("thinking", false)); ok && mixed == off {
			slices.Reverse(names) // it takes precedence over the other, if that has any effect
		}
	}
	for _, name := range names {
		if !p.uses(name) {
			continue
		}
		on, ok1 := both(kwarg(name, true))
		off, ok2 := both(kwarg(name, false))
		if ok1 && ok2 && on != off {
			c.reasoningSwitches = append(c.reasoningSwitches, setting{name, "true", "false"})
		}
	}
}

// words finds the switches with other names or values. They must change the generation prompt: a variable that is only
// printed is not a switch.
func (p prober) words(c *Capabilities, user string) {
	for _, name := range p.vars {
		if name == "enable_thinking" || name == "thinking" || name == c.effortVariable || !strings.Contains(name, "think") && !strings.Contains(name, "reason") {
			continue
		}
		for _, v := range pairs {
			s := setting{name, v.on, v.off}
			if on, _ := p.try(user, "", s.kwargs(true), true); on == "" {
				continue
			} else if off, _ := p.try(user, "", s.kwargs(false), true); on == off {
				continue
			}
			on, ok1 := p.generation(user, s.kwargs(true))
			off, ok2 := p.generation(user, s.kwargs(false))
			if !ok1 || !ok2 || on == off || v.word && strings.Contains(on, strings.Trim(v.on, `"`)) {
				continue
			}
			if !v.word {
				absent, _ := p.try(user, "", "", true)
				on, _ = p.try(user, "", s.kwargs(true), true)
				off, _ = p.try(user, "", s.kwargs(false), true)
				if absent != on && absent != off {
					continue // true is not one of its values
				}
			}
			c.reasoningSwitches = append(c.reasoningSwitches, s)
			break
		}
	}
	if c.effortVariable == "" || len(c.reasoningSwitches) > 0 {
		return
	}
	for _, off := range []string{`"none"`, `"no_think"`} {
		s := setting{c.effortVariable, `"high"`, off}
		on, ok1 := p.generation(user, s.kwargs(true))
		off, ok2 := p.generation(user, s.kwargs(false))
		if ok1 && ok2 && on != off {
			c.reasoningSwitches = []setting{s}
			return
		}
	}
}

// reasoningSwitch returns the switch that takes precedence, or the zero setting.
func (c *Capabilities) reasoningSwitch() setting {
	if len(c.reasoningSwitches) == 0 {
		return setting{}
	}
	return c.reasoningSwitches[0]
}

// NearestEffort returns the effort that the template accepts and that is nearest to the requested one; of two, the
// stronger. It returns "" for the effort none, which the switches of reasoning control, and if the template refuses some
// efforts and the requested one is unknown.
func (c *Capabilities) NearestEffort(asked string) string {
	if asked == "none" {
		return ""
	}
	taken := strings.Fields(c.efforts)
	if len(taken) == 0 || slices.Contains(taken, asked) {
		return asked
	}
	at, best := slices.Index(efforts, asked), ""
	if at < 0 {
		return ""
	}
	far := len(efforts)
	for _, e := range taken {
		i := slices.Index(efforts, e)
		if d := max(i-at, at-i); i > 0 && d <= far {
			best, far = e, d
		}
	}
	return best
}

// efforts lists the values of reasoning_effort in APIs, weakest first.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// effort finds the variable for the effort, which changes the prompt or is refused with some values while reasoning is on,
// and the efforts that are accepted.
func (p prober) effort(c *Capabilities, user string) {
	on := c.reasoningSwitch().kwargs(true)
	for _, name := range p.vars {
		if !strings.HasSuffix(name, "_effort") && !strings.HasSuffix(name, "_strength") {
			continue
		}
		var taken []string
		texts := map[string]bool{}
		for _, e := range efforts {
			text, ok := p.try(user, "", merged(on, `{"`+name+`":"`+e+`"}`), true)
			if ok {
				taken = append(taken, e)
			}
			if ok && e != "none" {
				texts[text] = true
			}
		}
		if len(taken) == 0 || len(taken) == len(efforts) && len(texts) == 1 {
			continue
		}
		c.effortVariable = name
		if len(taken) < len(efforts) {
			c.efforts = strings.Join(taken, " ")
		}
		return
	}
}

// budget finds the variable for the maximum number of tokens of reasoning. If only the last question shows it, it is not
// used, because every question would then change the prompt before it.
func (p prober) budget(c *Capabilities, user string) {
	const value = "4321"
	for _, name := range p.vars {
		if !strings.HasSuffix(name, "_budget") {
			continue
		}
		kwargs := `{"` + name + `":` + value + `}`
		first, ok1 := p.try(user, "", kwargs, false)
		second, ok2 := p.try(probeUser+probeAnswer+probeAgain, "", kwargs, false)
		if ok1 && ok2 && strings.Contains(first, value) && strings.HasPrefix(second, first) {
			c.budgetVariable = name
			return
		}
	}
}

// uses reports whether the template may read a variable, among those that probing sets.
func (p prober) uses(name string) bool { return slices.Contains(p.vars, name) }

// knownVars are the variables of templates that are not Jinja: all that probing knows by name.
var knownVars = append([]string{
	"enable_thinking", "thinking", "thinking_mode", "thinking_option", "thinking_budget", "reasoning", "reasoning_mode", "reasoning_budget",
	"reasoning_effort", "thinking_effort", "reasoning_strength",
}, historySwitches...)

// variablesOf returns the variables that a template may read: those that it reads before it sets them, and the known ones
// among the others.
func variablesOf(t Template) []string {
	switch t := t.(type) {
	case *compiled:
		names := slices.Clone(t.main.Free())
		if t.toolUse != nil {
			names = append(names, t.toolUse.Free()...)
		}
		for _, name := range knownVars {
			if t.main.Uses(name) || t.toolUse != nil && t.toolUse.Uses(name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	case chatML:
		return []string{"enable_thinking"}
	case harmony:
		return []string{"auto_drop_analysis", "reasoning_effort"}
	case *deepSeek:
		return []string{"drop_thinking", "enable_thinking", "reasoning_effort", "thinking"}
	case kimiK3:
		return []string{"reasoning_effort", "thinking"}
	}
	return knownVars
}
