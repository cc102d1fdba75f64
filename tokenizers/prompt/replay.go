// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/template"
)

// replay plans the past reasoning in the prompt: it sets out.Replay, out.Outcomes and the options for the messages.
// tools reports whether the prompt has tools.
func (m *Model) replay(req *block.Request, out *Prompt, opt *chat.RenderOptions, tools bool) (losses []block.Loss) {
	pref := replay.ParsePreference(req.Field, func(path, problem string) {
		losses = append(losses, block.Loss{Path: path, Why: problem})
	})
	_, set := ownKwargs(req)
	if name := m.reasons.history; name != "" && set[name] != nil {
		if pref.Vars == nil {
			pref.Vars = map[string]bool{}
		}
		if _, known := pref.Vars[name]; !known { // package replay knows some names
			pref.Vars[name] = string(set[name]) == "true"
		}
	}
	pref.Thinking = m.thinks(req.Params().Thinking, pref.Vars, set)
	out.Replay = replay.NewPlan(m.past, pref)
	if !out.Replay.Thinking && m.caps.Text("reasoning_switches") == "" && m.caps.Text("reasoning_key") != "" {
		losses = append(losses, block.Loss{Path: "messages", Why: "reasoning is off in the request, but the template cannot turn it off"})
	}
	turns := wire.ReplayTurns(req)
	m.asked(req, turns, opt)
	out.Outcomes = out.Replay.AppendOutcomes(nil, turns, tools)
	past := false
	for i, f := range out.Outcomes {
		past = past || f != replay.None
		if f == replay.Refused {
			losses = append(losses, block.Loss{Path: req.Turns()[i].At.Path(), Why: "the template does not print the reasoning"})
		}
	}
	var blank []bool // turns whose prompts ended with an empty block of reasoning
	if m.empty && !out.Replay.Thinking && m.caps.Has("blank_reasoning") {
		// The prompts of these turns ended with an empty block, which must be kept as long as reasoning would be.
		for i := range turns {
			turns[i].Reasoning = true
		}
		blank = out.Replay.Printed.AppendKept(nil, turns, tools)
		opt.Past = func(i int) (bool, bool) { return true, blank[i] }
	}
	if !past {
		return losses
	}
	for _, n := range out.Replay.Notes {
		losses = append(losses, block.Loss{Path: "messages", Why: n})
	}
	// Reasoning that the template itself drops is passed to it: without it, the template may print something else. In
	// an inline text it is left out, because a template that does not recognize the tags would print it.
	kept := func(o replay.Outcome) bool { return o != replay.Stripped }
	if out.Replay.Inline {
		kept = func(o replay.Outcome) bool { return o == replay.Kept }
		opt.Inline = m.tags
		if opt.Inline == nil { // the tags that the probe used
			opt.Inline = &chat.Tags{Open: "<think>\n", Close: "\n</think>\n\n"}
		}
	}
	opt.Past = func(i int) (bool, bool) { return kept(out.Outcomes[i]), blank != nil && blank[i] }
	return losses
}

// asked sets Start for the system turns that the template treats as user messages. If the conversation has no start at
// all, it may also set it for the results at the end, depending on the template.
func (m *Model) asked(req *block.Request, turns []replay.Turn, opt *chat.RenderOptions) {
	begun, results := false, false
	for i, t := range req.Turns() {
		switch {
		case t.Role == block.RoleDeveloper && opt.KeepDeveloper:
			if begun && m.caps.Has("developer_asks") {
				turns[i].Start = true
			}
		case t.Role == block.RoleSystem || t.Role == block.RoleDeveloper:
			// As a user message, it is joined with the results before it.
			if begun && (opt.System == chat.SystemAsUser && !results || opt.System != chat.SystemAsUser && m.caps.Has("system_asks")) {
				turns[i].Start = true
			}
		default:
			begun, results = true, t.Kind == block.ToolContinuation && !turns[i].Start
		}
	}
	if m.caps.Has("no_user") && !m.caps.Has("reasoning_no_user") && results && !slices.ContainsFunc(turns, func(t replay.Turn) bool { return t.Start }) {
		turns[len(turns)-1].Start = true
	}
}

// thinks reports whether the request enables reasoning; nil means that it does not specify that. Variables of the
// template take precedence over the API's fields: the template's own, or enable_thinking and thinking, either of which
// works, whichever the template reads.
func (m *Model) thinks(t block.Thinking, vars map[string]bool, set map[string]json.RawMessage) *bool {
	if len(m.reasons.switches) > 0 {
		name := m.reasons.switches[0]
		if _, known := vars[name]; !known && set[name] != nil {
			var value any
			on := json.Unmarshal(set[name], &value) != nil || value != m.reasons.off[name]
			return &on
		}
	}
	for _, name := range []string{"enable_thinking", "thinking"} {
		if v, ok := vars[name]; ok {
			return &v
		}
	}
	off := t.Mode == block.ThinkingOff || t.Effort == "none"
	on := !off && (t.Mode == block.ThinkingOn || t.Mode == block.ThinkingAdaptive || t.Effort != "")
	if !off && !on {
		return nil
	}
	return &on
}

// replayOf converts a template's capabilities for past reasoning to a replay.Template.
func replayOf(c *template.Capabilities) (replay.Template, error) {
	return replay.Infer(replay.Observations{
		Key: c.Text("reasoning_key") != "", Inline: c.Has("reasoning_inline"), Printed: c.Text("past_reasoning"), Left: c.Text("omitted_reasoning"),
		Thinking: strings.Fields(c.Text("reasoning_switches")), OffByDefault: c.Has("off_by_default"),
	})
}

// tagsOf returns the tags of a family's reasoning, including white space, or nil if it has none.
func tagsOf(g *grammar.Grammar) *chat.Tags {
	if g.Tagged == nil || g.Tagged.Reasoning == nil {
		return nil
	}
	r := g.Tagged.Reasoning
	return &chat.Tags{Open: r.Open.Text + r.Label + r.Lead, Close: r.Tail + r.Close.Text + r.After}
}
