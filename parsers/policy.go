// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/event"
)

// Policy selects behavior on which other parsers disagree. It is a comparable value that [ParsePolicy] reads from text:
// the name of a profile, which may be left out, then words that change single rules of it, separated by white space, as
// in "dynamo keep_blanks failed=malformed". The zero Policy is the default. The profiles are
//
//	default   every rule has the default below
//	dynamo    what NVIDIA Dynamo's v1 parsers do with the parser's family, as far as a streaming parser can, for a
//	          migration that must not change responses. Source: the recorded results of lib/parsers, tree of 2026-06.
//	strict    nothing is guessed: keep_blanks keep_orphans reject_unknown_tools reject_recovered
//
// A rule without values is off by default; its name turns it on, as NAME=true does, and NAME=false turns it off again. If
// a rule appears more than once, the last one takes precedence. Rules about tags inside plain text have no effect in
// families that frame everything; those follow their frames. The rules are
//
//	keep_blanks           white space between blocks is text. By default a run of text that is only white space is
//	                      structure if a call or reasoning is next to it; a response of only white space is text anyway.
//	before=VALUE          white space between text and a call:
//	    template          what the family's template prints there is dropped (the default)
//	    drop              all of it is dropped
//	    keep              all of it is kept
//	keep_tail             the newline before the closing tag of reasoning is reasoning, for a template that prints none
//	                      there. By default it belongs to the markup where a template of the family prints it.
//	join_thoughts         spans of reasoning with nothing between them are one block, with a newline between them. By
//	                      default each is a block, and nothing is added.
//	drop_after_call       the text after the first complete call is dropped. By default it is kept.
//	keep_orphans          closing markers without an opener remain in the text. By default those that are tokens are
//	                      dropped; but after reasoning and text, a closing tag of reasoning is text.
//	drop_orphans          after reasoning, closing tags of reasoning without an opener are dropped.
//	quote_in_reasoning    tool markup inside reasoning is text. By default the call is parsed, with event.InReasoning
//	                      set, and the reasoning continues after it.
//	break_out             a call inside reasoning ends the reasoning, for models that leave out the closing tag. The call
//	                      does not carry event.InReasoning, and what follows it is text. In families of channels whose
//	                      calls are in tags, the header of a message ends reasoning also if its first marker is missing.
//	opener_ends_thought   the opening tag of a call ends reasoning even if no call follows it. By default such a tag is
//	                      reasoning, because models think about the format too.
//	force_reasoning       StartUnspecified means inside reasoning for every family that has reasoning.
//	drop_unframed         text before any message is dropped, in families of channels, unless a message follows it. It
//	                      is held under Limits.HeldBytes until then. By default it is text.
//	bare_anywhere         a call object without a tag is a call anywhere in the text, in families that write one at its
//	                      beginning. By default only there, and after another such call: an object in prose may be an
//	                      example.
//	untyped_json          parameters that the tool's schema does not declare are JSON if they can be. By default they are
//	                      strings.
//	typed_by_schema       the schema types the values of declared parameters, not the attribute that the model wrote, as in
//	                      string="true". By default the attribute does.
//	unwrap                an object that is the only parameter, called arguments or input, is the arguments if the tool does
//	                      not declare such a parameter, in families with such an attribute. By default it is a parameter.
//	need_arguments        calls whose object has no arguments abort. By default their arguments are {}.
//	reject_unknown_tools  calls to tools that Options.Tools does not list abort with event.UnknownTool. By default they
//	                      are forwarded: parsing is not validation.
//	reject_recovered      calls whose markup was damaged abort with event.BadStructure. By default they carry
//	                      event.Recovered.
//	unclosed              a call with complete arguments needs no closing tag, in families that need one. It carries
//	                      event.Recovered then. By default it aborts.
//	emit_truncated        a call whose last raw string value the end of the stream cut is completed and carries
//	                      event.Repaired, in families with tagged parameters. By default it aborts, since half of a
//	                      command must not run.
//	repair                closing braces and brackets that arguments lack are added if the call's closing tag follows a
//	                      complete value, in families whose arguments are JSON between tags. The call carries
//	                      event.Repaired. By default it aborts.
//	failed=VALUE          the source of an aborted call, which is held under Limits.HeldBytes while it may become text:
//	    drop              it is dropped; the event.ToolAbort reports the call, with its reason and span (the default)
//	    malformed         it is text after the event.ToolAbort, unless the end of the stream cut the call
//	    all               it is text after the event.ToolAbort
//
// The profile dynamo is drop_after_call, drop_orphans, before=keep and, by the canonical name of the family,
//
//	phi4                                before=drop need_arguments
//	gemma4, llama3_json, pythonic       before=drop
//	nemotron_deci                       before=drop keep_orphans
//	hermes, qwen3                       before=drop failed=all repair need_arguments
//	jamba, qwen25                       before=drop failed=malformed
//	harmony                             drop_unframed join_thoughts
//	mistral                             force_reasoning failed=malformed
//	qwen3_coder, qwen35, nemotron_nano  emit_truncated
//	glm47, glm45                        reject_unknown_tools
type Policy struct {
	profile profile
	values  [len(policyRules)]uint8 // by policyRules: 0 means the profile's value, otherwise 1 + the value's index
}

type profile uint8

const (
	profileDefault profile = iota
	profileDynamo
	profileStrict
)

// policyProfiles are the names of the profiles.
var policyProfiles = [...]string{"default", "dynamo", "strict"}

// policyRules are the rules in the order of [Policy.String]. The default is the first value.
var policyRules = [...]struct {
	name   string
	values []string // nil means false and true
	set    func(*rules, uint8)
}{
	{"keep_blanks", nil, func(r *rules, v uint8) { r.keepBlanks = v != 0 }},
	{"before", []string{"template", "drop", "keep"}, func(r *rules, v uint8) { r.before = before(v) }},
	{"keep_tail", nil, func(r *rules, v uint8) { r.keepTail = v != 0 }},
	{"join_thoughts", nil, func(r *rules, v uint8) { r.joinThoughts = v != 0 }},
	{"drop_after_call", nil, func(r *rules, v uint8) { r.dropAfterCall = v != 0 }},
	{"keep_orphans", nil, func(r *rules, v uint8) { r.keepOrphans = v != 0 }},
	{"drop_orphans", nil, func(r *rules, v uint8) { r.dropOrphans = v != 0 }},
	{"quote_in_reasoning", nil, func(r *rules, v uint8) { r.quoteInReasoning = v != 0 }},
	{"break_out", nil, func(r *rules, v uint8) { r.breakOut = v != 0 }},
	{"opener_ends_thought", nil, func(r *rules, v uint8) { r.openerEnds = v != 0 }},
	{"force_reasoning", nil, func(r *rules, v uint8) { r.forceReasoning = v != 0 }},
	{"drop_unframed", nil, func(r *rules, v uint8) { r.dropUnframed = v != 0 }},
	{"bare_anywhere", nil, func(r *rules, v uint8) { r.bareAnywhere = v != 0 }},
	{"untyped_json", nil, func(r *rules, v uint8) { r.untypedJSON = v != 0 }},
	{"typed_by_schema", nil, func(r *rules, v uint8) { r.typedBySchema = v != 0 }},
	{"unwrap", nil, func(r *rules, v uint8) { r.unwrap = v != 0 }},
	{"need_arguments", nil, func(r *rules, v uint8) { r.needArguments = v != 0 }},
	{"reject_unknown_tools", nil, func(r *rules, v uint8) { r.rejectUnknownTools = v != 0 }},
	{"reject_recovered", nil, func(r *rules, v uint8) { r.rejectRecovered = v != 0 }},
	{"unclosed", nil, func(r *rules, v uint8) { r.unclosed = v != 0 }},
	{"emit_truncated", nil, func(r *rules, v uint8) { r.emitTruncated = v != 0 }},
	{"repair", nil, func(r *rules, v uint8) { r.repair = v != 0 }},
	{"failed", []string{"drop", "malformed", "all"}, func(r *rules, v uint8) { r.failed = failed(v) }},
}

var policySwitch = []string{"false", "true"}

// ParsePolicy parses the text of a policy in the syntax of [Policy]. The empty text yields the zero Policy.
func ParsePolicy(text string) (Policy, error) {
	var p Policy
	for i, word := range strings.Fields(text) {
		if at := slices.Index(policyProfiles[:], word); at >= 0 {
			if i > 0 {
				return Policy{}, fmt.Errorf("parsers: policy %q: the profile %s must be the first word", text, word)
			}
			p.profile = profile(at)
			continue
		}
		name, value, given := strings.Cut(word, "=")
		at := 0
		for at < len(policyRules) && policyRules[at].name != name {
			at++
		}
		if at == len(policyRules) {
			return Policy{}, fmt.Errorf("parsers: policy: unknown word %q: want %s", word, policyWords())
		}
		values := policyRules[at].values
		if values == nil {
			values = policySwitch
			if !given {
				value = "true"
			}
		}
		v := slices.Index(values, value)
		if v < 0 {
			return Policy{}, fmt.Errorf("parsers: policy: word %q: want %s=%s", word, name, strings.Join(values, "|"))
		}
		p.values[at] = uint8(v) + 1
		if v == 0 && p.profile == profileDefault {
			p.values[at] = 0 // so that equal policies compare equal
		}
	}
	return p, nil
}

// policyWords returns the words that a policy may have.
func policyWords() string {
	words := slices.Clone(policyProfiles[:])
	for _, r := range policyRules {
		if r.values != nil {
			r.name += "=" + strings.Join(r.values, "|")
		}
		words = append(words, r.name)
	}
	return strings.Join(words, ", ")
}

// String returns the text of the policy, which begins with its profile.
func (p Policy) String() string {
	text := policyProfiles[p.profile]
	for i, v := range p.values {
		r := &policyRules[i]
		switch {
		case v == 0:
		case r.values != nil:
			text += " " + r.name + "=" + r.values[v-1]
		case v == 1:
			text += " " + r.name + "=false"
		default:
			text += " " + r.name
		}
	}
	return text
}

// rules returns the rules of p for a family, by its canonical name.
func (p Policy) rules(family string) rules {
	var r rules
	switch p.profile {
	case profileDynamo:
		r = dynamo(family)
	case profileStrict:
		r = rules{keepBlanks: true, keepOrphans: true, rejectUnknownTools: true, rejectRecovered: true}
	}
	for i, v := range p.values {
		if v > 0 {
			policyRules[i].set(&r, v-1)
		}
	}
	return r
}

// rules are the rules of a [Policy] for one family.
type rules struct {
	keepBlanks         bool
	before             before
	keepTail           bool
	joinThoughts       bool
	dropAfterCall      bool
	keepOrphans        bool
	dropOrphans        bool
	quoteInReasoning   bool
	breakOut           bool
	openerEnds         bool
	forceReasoning     bool
	dropUnframed       bool
	bareAnywhere       bool
	untypedJSON        bool
	typedBySchema      bool
	unwrap             bool
	needArguments      bool
	rejectUnknownTools bool
	rejectRecovered    bool
	unclosed           bool
	emitTruncated      bool
	repair             bool
	failed             failed
}

// before specifies what happens to white space between text and a call.
type before uint8

// The values are in the order of policyRules.
const (
	beforeTemplate before = iota
	beforeDrop
	beforeKeep
)

// failed specifies what happens to the markup and arguments of an aborted call.
type failed uint8

// The values are in the order of policyRules.
const (
	failedDrop failed = iota
	failedMalformed
	failedAll
)

func dynamo(family string) rules {
	r := rules{dropAfterCall: true, dropOrphans: true, before: beforeKeep}
	switch family {
	case "phi4":
		r.before, r.needArguments = beforeDrop, true
	case "gemma4", "llama3_json", "pythonic":
		r.before = beforeDrop
	case "nemotron_deci":
		r.before, r.keepOrphans = beforeDrop, true
	case "hermes", "qwen3":
		r.before, r.failed, r.repair, r.needArguments = beforeDrop, failedAll, true, true
	case "jamba", "qwen25":
		r.before, r.failed = beforeDrop, failedMalformed
	case "harmony":
		r.dropUnframed, r.joinThoughts = true, true
	case "mistral":
		r.forceReasoning, r.failed = true, failedMalformed
	case "qwen3_coder", "qwen35", "nemotron_nano":
		r.emitTruncated = true
	case "glm47", "glm45":
		r.rejectUnknownTools = true
	}
	return r
}

// shows reports whether the source of a call aborted for why becomes text.
func (r *rules) shows(why event.Why) bool {
	return r.failed == failedAll || r.failed == failedMalformed && why != event.Truncated
}
