// SPDX-License-Identifier: Apache-2.0

package template

import "strings"

// This file observes where the turn of the assistant begins. Some templates end a user message with the head of the
// response, as DeepSeek's do. Text that follows it would then be part of the response.

// turns sets the features for messages at positions where a template may not expect them. closed is the prompt of one
// user message.
func (p prober) turns(c *Capabilities, closed string) {
	user := strings.TrimSuffix(probeUser, ",")
	head := p.head(user, closed)
	for _, m := range []struct {
		role, mark string
		set        *bool
	}{{"user", "Zqagain", &c.consecutiveUsers}, {"system", "Zqmiddle", &c.systemAfterUser}} {
		added := probeUser + `{"role":"` + m.role + `","content":"` + m.mark + `"}`
		*m.set = p.follows(added, "", "Zquser", m.mark, "", head) &&
			p.follows(added+","+probeAnswer+`,{"role":"user","content":"Zqlast"}`, "", "Zquser", m.mark, "Zqanswer", head)
	}
	c.systemAfterUser = c.systemAfterUser && c.systemMiddle
	// The texts with each role differ in nothing but the name if the template does not know the role.
	same := strings.NewReplacer("developer", "role", "system", "role", "zqrole", "role")
	as := func(role string) string {
		text, ok := p.try(`{"role":"`+role+`","content":"Zqdeveloper"},`+user, "", "", false)
		if !ok || !strings.Contains(text, "Zqdeveloper") {
			return ""
		}
		return same.Replace(text)
	}
	text := as("developer")
	c.developer = text != "" && text != as("system") && text != as("zqrole")
}

// afterResults sets the feature for system text after tool results. chain is a conversation that ends with a result.
func (p prober) afterResults(c *Capabilities, chain string) {
	closed, ok := p.try(chain, probeTools, "", false)
	open, okOpen := p.try(chain, probeTools, "", true)
	head, isOpen := strings.CutPrefix(open, closed)
	if !ok || !okOpen || !isOpen {
		head = ""
	}
	c.systemAfterUser = c.systemAfterUser &&
		p.follows(chain+`,{"role":"system","content":"Zqmiddle"}`, probeTools, "Zqresult", "Zqmiddle", "", strings.TrimSpace(head))
}

// follows reports whether a is printed before b and the head of a response only after b. The response is end, or the one
// that AddGenerationPrompt begins.
func (p prober) follows(messages, tools, a, b, end, head string) bool {
	text, ok := p.try(messages, tools, "", end == "")
	if !ok || !inOrder(text, []string{a, b, end}) {
		return false
	}
	_, text, _ = strings.Cut(text, a)
	before, after, _ := strings.Cut(text, b)
	if end != "" {
		after, _, _ = strings.Cut(after, end)
	}
	return head == "" || !strings.Contains(before, head) && strings.Contains(after, head)
}

// head returns the beginning of a response, as printed in past turns and by AddGenerationPrompt, without white space
// around it. It is "" if a response simply follows the end of the user's turn.
func (p prober) head(user, closed string) string {
	open, ok := p.try(user, "", "", true)
	past, okPast := p.try(probeUser+probeAnswer+probeAgain, "", "", false)
	open, isOpen := strings.CutPrefix(open, closed)
	past, isPast := strings.CutPrefix(past, closed)
	if !ok || !okPast || !isOpen || !isPast {
		return ""
	}
	n := 0
	for n < len(open) && n < len(past) && open[n] == past[n] {
		n++
	}
	return strings.TrimSpace(open[:n])
}
