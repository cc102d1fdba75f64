// SPDX-License-Identifier: Apache-2.0

package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
)

// Raw makes a Jinja template take messages unchanged, as transformers does, and returns it.
func Raw(t Template) Template {
	t.(*compiled).raw = true
	return t
}

// Generations returns the parts of p that its template marks as written by the model.
func Generations(p *Prompt) []jinja.Range { return p.generations }

// Features returns the names that [Capabilities.Has] knows.
func Features() []string { return slices.Sorted(maps.Keys(features)) }

// Scopes returns the scope of each clause of past_reasoning, see [Capabilities.Text]; the first is "".
func Scopes(past string) map[string]string {
	out := map[string]string{}
	for clause := range strings.SplitSeq(past, "; ") {
		key, list, ok := strings.Cut(clause, ": ")
		if !ok {
			key, list = "", clause
		}
		var s seen
		for _, word := range strings.Fields(list) {
			i, n := slices.Index(talks[:], strings.ToLower(word)), 0
			for _, turn := range word {
				if turn == 'u' || turn == 't' {
					continue
				}
				s.known |= 1 << (2*i + n)
				if turn == 'A' || turn == 'C' {
					s.shown |= 1 << (2*i + n)
				}
				n++
			}
		}
		out[key] = string(s.kind())
	}
	return out
}

// A scope is a name for what the templates of the tests print of past reasoning. Package replay of module protocols infers the same
// ones.
type scope string

const (
	scopeUnknown        scope = ""                 // another selection
	scopeSinceFinal     scope = "since_final"      // after the last response without calls
	scopeFirstFinal     scope = "first_final"      // after the first response without calls if the assistant's last message has no calls, otherwise everywhere
	scopeCalls          scope = "calls"            // in messages with calls
	scopeSinceUserCalls scope = "since_user_calls" // in messages with calls, and after the last message of the user
	scopeLastTurn       scope = "last_turn"        // in the last message of the assistant
)

// printed returns what a template of kind r prints of the talks, by the meaning of the kinds.
func (r scope) printed() (bits uint32) {
	for i, talk := range talks {
		lastUser, lastAnswer, firstAnswer := strings.LastIndexByte(talk, 'u'), strings.LastIndexByte(talk, 'a'), strings.IndexByte(talk, 'a')
		ends := lastAnswer > strings.LastIndexByte(talk, 'c')
		n := 0
		for at := range len(talk) {
			call := talk[at] == 'c'
			if !call && talk[at] != 'a' {
				continue
			}
			show := false
			switch r {
			case scopeAll:
				show = true
			case scopeSinceUser:
				show = at > lastUser
			case scopeSinceFinal:
				show = at > lastAnswer
			case scopeFirstFinal:
				show = !ends || at > firstAnswer
			case scopeCalls:
				show = call
			case scopeSinceUserCalls:
				show = call || at > lastUser
			case scopeLastTurn:
				show = at == max(lastAnswer, strings.LastIndexByte(talk, 'c'))
			}
			if show {
				bits |= 1 << (2*i + n)
			}
			n++
		}
	}
	return bits
}

// kind returns what s is.
func (s seen) kind() scope {
	if s.known == 0 {
		return scopeNone
	}
	for _, r := range []scope{
		scopeNone, scopeAll, scopeSinceUser, scopeSinceFinal, scopeFirstFinal, scopeCalls, scopeSinceUserCalls, scopeLastTurn,
	} {
		if r.printed()&s.known == s.shown {
			return r
		}
	}
	// Current clients do not send conversations that end with a response; some templates treat that last message
	// differently.
	if last := uint32(3) << (2 * (len(talks) - 1)); s.known&last != 0 {
		return seen{s.shown &^ last, s.known &^ last}.kind()
	}
	return scopeUnknown
}
