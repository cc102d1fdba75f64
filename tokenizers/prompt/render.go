// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template"
)

// Prompt is a rendered request. It is not safe for concurrent use.
type Prompt struct {
	// The text, segments and spans, whose slices the caller must not modify. Span paths refer to the conversation in
	// OpenAI's chat form.
	*template.Prompt

	// Losses lists the content that the prompt omits or moves. Reasoning that the rule drops is not a loss; see
	// Outcomes.
	Losses []block.Loss
	// Replay is the plan for past reasoning, and Outcomes its outcome for each turn of the request.
	Replay   replay.Plan
	Outcomes []replay.Outcome
	// Namespace isolates the prompt in the prefix cache, normally by a tenant's salt, so that no tenant can probe the
	// prompts of others by timing. Set it before the first call to IDs. Prompts with an empty Namespace share one.
	Namespace string

	model  *Model
	ids    []uint32
	cuts   []cache.Prefix
	done   bool            // ids and cuts were computed
	raw    bool            // from Raw; it may declare tools that the request does not
	turn   *Turn           // nil without a Memo
	tokens *tokens         // with a Memo, once ids are computed
	now    time.Time       // as given to Render
	places []chat.Position // positions of the blocks in the messages

	// Of the blocks whose messages were taken over from an earlier prompt, places has no positions if partial is set.
	partial bool
	req     *block.Request
	past    *spellings

	recalled bool // with a Memo: it has arguments of a call that the conversation's entry has

	repair bool            // calls with arguments that are not an object have none
	fitted []byte          // the messages, if Fit changed them; otherwise nil
	values []jsonval.Value // instead of fitted, if the messages were values
}

// Raw returns the prompt with the given token ids, which is not rendered from a conversation, for requests of the Completions
// API. It has no text, segments and spans. The caller must not modify ids afterwards. To decode the output without a
// parser, use a model with the family passthrough; see [Model.WithFamily].
func (m *Model) Raw(ids []uint32) *Prompt {
	return &Prompt{Prompt: &template.Prompt{}, model: m, ids: ids, done: true, raw: true}
}

// IDs returns the token ids of the prompt, or nil if the model has no tokenizer. The prompt is encoded by its segments,
// so text of the request never becomes a control token. The first call encodes it, using the model's prefix cache;
// later calls return the same slice. The caller must not modify it.
func (p *Prompt) IDs() []uint32 {
	p.encode()
	return p.ids
}

// Cuts returns token boundaries of the prompt, as [cache.Cache.AppendEncodePrefixes] returns them, for [Prompt.Tokens].
func (p *Prompt) Cuts() []cache.Prefix {
	p.encode()
	return p.cuts
}

func (p *Prompt) encode() {
	if p.done || p.model.cache == nil {
		return
	}
	p.done = true
	if p.turn == nil {
		p.ids, p.cuts = p.model.cache.AppendEncodePrefixes(nil, nil, p.Namespace, p.Segments)
		return
	}
	p.tokens = p.turn.encode(p)
	p.ids, p.cuts = p.tokens.ids, p.tokens.cuts
}

// Render renders req into a prompt. now is the time that templates may print.
//
// If the template refuses the conversation, the error is an *[apierr.Error] of class Invalid, whose message includes the
// first loss of a turn or block. The returned Prompt then only has Losses, Replay and Outcomes; the embedded
// template.Prompt is nil.
func (m *Model) Render(req *block.Request, now time.Time) (*Prompt, error) {
	return m.render(req, now, nil)
}

// render renders req. turn may be nil. If the template refuses a conversation with past calls whose arguments are not an
// object, such as a call that was cut, they are printed without arguments, as in vLLM: the client returns them in each
// later request, so an error would end the conversation.
func (m *Model) render(req *block.Request, now time.Time, turn *Turn) (*Prompt, error) {
	out, err := m.renderOnce(req, now, turn, false)
	if err == nil {
		return out, nil
	}
	losses := brokenCalls(req)
	if len(losses) == 0 {
		return out, err
	}
	repaired, again := m.renderOnce(req, now, turn, true)
	if again != nil {
		return out, err
	}
	repaired.Losses = append(repaired.Losses, losses...)
	return repaired, nil
}

func (m *Model) renderOnce(req *block.Request, now time.Time, turn *Turn, repair bool) (*Prompt, error) {
	out := &Prompt{now: now, model: m, repair: repair}
	if t, ok := m.template.(valueTemplate); ok {
		var past *spellings
		if turn != nil {
			if done, err := m.renderParts(t, turn, req, out); done {
				return out, err
			}
			*out = Prompt{now: now, model: m, repair: repair}
			past = turn.past()
		}
		if done, err := m.renderValues(t, req, out, past); done {
			return out, err
		}
		*out = Prompt{now: now, model: m, repair: repair}
	}
	err := m.renderJSON(req, out)
	return out, err
}

// valueTemplate is implemented by the templates of package template, but not by others, which may wrap them.
type valueTemplate interface {
	FitValues(c *template.Capabilities, messages []jsonval.Value) (fitted []jsonval.Value, notes []string)
	FitParts(c *template.Capabilities, messages []*jsonval.Part, printed int) (fitted []jsonval.Value, notes []string)
	RenderValues(req template.Request, messages, tools []jsonval.Value) (*template.Prompt, error)
}

// renderValues renders req without JSON between the request and the template. It reports false if it cannot be
// certain that the template would read the same from JSON.
func (m *Model) renderValues(t valueTemplate, req *block.Request, out *Prompt, past *spellings) (done bool, err error) {
	var b jsonval.Builder
	m.walk(req, out, b.Add, past)
	v, ok := b.Value()
	if !ok {
		return false, nil
	}
	messages, notes := t.FitValues(&m.caps, v.Get("messages").List)
	if out.changed(notes) {
		out.values = messages
	}
	out.Prompt, err = t.RenderValues(m.request(req, out), messages, v.Get("tools").List)
	if err != nil {
		return true, out.refused(req, err)
	}
	return true, nil
}

// walk passes the conversation to add, and sets the plan for past reasoning and the losses of out. past has the
// arguments of calls as the model wrote them; it may be nil.
func (m *Model) walk(req *block.Request, out *Prompt, add func(kind byte, text string), past *spellings) {
	m.walkNext(req, out, add, past, nil)
}

// walkNext is walk after an earlier request; see [chat.WalkNext].
func (m *Model) walkNext(req *block.Request, out *Prompt, add func(kind byte, text string), past *spellings, before *chat.Walked) *chat.Walked {
	opt := m.options(req)
	opt.Call = m.callForm(past, out)
	list := req.Tools()
	tools := false
	for i := range list {
		tools = tools || !list[i].Deferred && list[i].Kind != block.Hosted
	}
	out.Losses = m.replay(req, out, &opt, tools)
	opt.Places = &out.places
	stable := !out.repair && !m.caps.Has("short_ids") && !past.renamed() // a call is written the same in each request
	if !stable {
		before = nil
	}
	walked, losses := chat.WalkNext(req, before, add, &opt)
	out.Losses = append(out.Losses, losses...)
	m.loseTools(req, out)
	if before != nil {
		out.partial, out.req, out.past = true, req, past
	}
	if !stable {
		return nil
	}
	return walked
}

// complete adds the positions of blocks that were not walked.
func (p *Prompt) complete() {
	if !p.partial {
		return
	}
	all := Prompt{now: p.now, model: p.model, repair: p.repair}
	p.model.walk(p.req, &all, func(byte, string) {}, p.past)
	p.places, p.partial = all.places, false
}

// renderJSON renders req for templates of other packages, which read JSON.
func (m *Model) renderJSON(req *block.Request, out *Prompt) error {
	opt := m.options(req)
	opt.Call = m.callForm(nil, out)
	tools, lost := chat.AppendTools(nil, req)
	out.Losses = m.replay(req, out, &opt, len(tools) > len("[]"))
	opt.Places = &out.places
	messages, more := chat.AppendMessages(nil, req, &opt)
	out.Losses = append(append(out.Losses, more...), lost...)
	m.loseTools(req, out)
	messages, notes, err := template.Fit(messages, &m.caps)
	if err != nil {
		return out.refused(req, err)
	}
	if out.changed(notes) {
		out.fitted = messages
	}
	r := m.request(req, out)
	r.Messages, r.Tools = messages, tools
	if out.Prompt, err = m.template.Render(r); err != nil {
		return out.refused(req, err)
	}
	return nil
}

// options returns the form of the messages that the template reads.
func (m *Model) options(req *block.Request) chat.RenderOptions {
	opt := chat.RenderOptions{
		TextOnly:          !m.caps.Has("images"),
		KeepDeveloper:     m.caps.Has("developer"),
		ReasoningSegments: m.caps.Has("reasoning_segments"),
		Separators:        m.separators,
	}
	switch {
	case !m.caps.Has("object_arguments") || m.verbatim:
	case req.API() == block.Messages:
		// The Messages API has arguments as an object, formatted by the client's JSON library. The template formats
		// them as in the model's training data, which is most likely how the model wrote them.
		opt.Arguments = chat.ArgumentsObject
	case req.API() != block.None:
		// The other APIs have them as a string, but opencode and pi parse it and format it again. Requests that were
		// not decoded from a body contain the model's own text.
		opt.Arguments = chat.ArgumentsRespelled
	}
	if !m.caps.Has("system_middle") {
		opt.System = chat.SystemAsUser
	}
	return opt
}

// separatorsOf returns what the template prints between the text parts of a message, by role. Roles whose parts it does
// not print have no entry.
func separatorsOf(c *template.Capabilities) map[string]string {
	out := map[string]string{}
	for _, role := range []string{"system", "user", "assistant", "tool"} {
		if c.Has("list_" + role) {
			out[role] = c.Text("separator_" + role)
		}
	}
	if s, ok := out["system"]; ok {
		out["developer"] = s
	}
	return out
}

// loseTools records that the template does not print the tools.
func (m *Model) loseTools(req *block.Request, out *Prompt) {
	if !m.caps.Has("tools") && len(req.Tools()) > 0 {
		why := "the template does not print tools"
		if m.untold() {
			why = "the model has no template of its own, and the parser " + m.Family() + " does not read calls in ChatML"
		}
		out.Losses = append(out.Losses, block.Loss{Path: "tools", Why: why})
	}
}

// changed records the changes of Fit, and reports whether there are any.
func (p *Prompt) changed(notes []string) bool {
	for _, n := range notes {
		p.Losses = append(p.Losses, block.Loss{Path: "messages", Why: n})
	}
	return len(notes) > 0
}

// request returns the request to the template, without the conversation.
func (m *Model) request(req *block.Request, out *Prompt) template.Request {
	open := ""
	if continues(req) {
		open = "content"
	}
	return template.Request{
		Kwargs: m.kwargs(req, &out.Replay), Now: out.now,
		AddGenerationPrompt: open == "" && string(req.Field("add_generation_prompt")) != "false", ContinueFinalMessage: open,
	}
}

// refused returns the error for a conversation that cannot be rendered. Its message has the first loss of a turn or block,
// which may be the cause; if no turn has a known role, it is.
func (p *Prompt) refused(req *block.Request, err error) error {
	e := &apierr.Error{Why: event.Invalid}
	for _, l := range p.Losses {
		if l.Path != "" && !strings.Contains(l.Path, "[") || strings.HasPrefix(l.Path, "tools[") { // a field, the messages as a whole, a tool
			continue
		}
		err = fmt.Errorf("%w; not rendered: %s", err, l)
		if !slices.ContainsFunc(req.Turns(), func(t block.Turn) bool { return t.Role != block.RoleUnknown }) {
			e.Param = l.Path
		}
		break
	}
	e.Message, e.Cause = "The conversation cannot be rendered: "+err.Error(), err
	return e
}

// continues reports whether the model continues the last message, which must be the assistant's and only have text:
// always in the Messages API, and in the Chat Completions API if vLLM's field continue_final_message is true.
func continues(req *block.Request) bool {
	turns := req.Turns()
	if len(turns) == 0 || turns[len(turns)-1].Role != block.RoleAssistant {
		return false
	}
	for _, b := range turns[len(turns)-1].Blocks {
		if b.Kind != block.Text {
			return false
		}
	}
	switch req.API() {
	case block.Messages:
		return true
	case block.Chat:
		return string(req.Field("continue_final_message")) == "true"
	}
	return false
}

// kwargs returns the template's variables as JSON: the request's own and, unless it sets them, the plan's and the ones
// for the request's thinking, effort and budget.
func (m *Model) kwargs(req *block.Request, plan *replay.Plan) []byte {
	vars := map[string]any{}
	for name, value := range plan.Vars {
		vars[name] = value
	}
	own, set := ownKwargs(req)
	ask := req.Params().Thinking
	if !slices.ContainsFunc(m.reasons.switches, func(s string) bool { return set[s] != nil }) {
		switch {
		case !plan.Thinking && !m.reasons.offByDefault:
			maps.Copy(vars, m.reasons.off)
		case plan.Thinking && (m.reasons.offByDefault || m.reasons.undecided && (ask.Mode == block.ThinkingOn || ask.Effort != "")):
			maps.Copy(vars, m.reasons.on)
		}
	}
	if name := m.reasons.effort; name != "" && (plan.Thinking || m.reasons.off[name] == nil) {
		if e := m.caps.NearestEffort(ask.Effort); e != "" {
			vars[name] = e
		}
	}
	if name := m.reasons.budget; name != "" && plan.Thinking && ask.Budget != nil && *ask.Budget > 0 {
		vars[name] = *ask.Budget
	}
	maps.DeleteFunc(vars, func(name string, _ any) bool { return set[name] != nil })
	if len(vars) == 0 {
		return own
	}
	out, err := json.Marshal(vars)
	if err != nil {
		return own // cannot happen with strings, numbers and booleans
	}
	if len(own) < 2 || own[0] != '{' {
		return out
	}
	if inner := bytes.TrimSpace(own[1 : len(own)-1]); len(inner) > 0 {
		return slices.Concat([]byte("{"), inner, []byte(","), out[1:]) // out has no name that own sets
	}
	return out
}

// ownKwargs returns the template's variables that a request sets, as JSON and, if they are an object, by name.
func ownKwargs(req *block.Request) (own []byte, set map[string]json.RawMessage) {
	for _, name := range []string{"chat_template_kwargs", "chat_template_args"} { // the second is Dynamo's
		if own = bytes.TrimSpace(req.Field(name)); len(own) > 0 && string(own) != "null" {
			break
		}
		own = nil
	}
	_ = json.Unmarshal(own, &set)
	return own, set
}

// reasoningVars are the variables of a template that determine whether and how much the model reasons.
type reasoningVars struct {
	switches                []string       // the first takes precedence
	on, off                 map[string]any // the first with its values
	offByDefault, undecided bool
	effort, budget, history string // names, or ""
}

func reasoningVarsOf(c *template.Capabilities) reasoningVars {
	v := reasoningVars{
		switches: strings.Fields(c.Text("reasoning_switches")), offByDefault: c.Has("off_by_default"), undecided: c.Has("undecided"),
		effort: c.Text("effort_variable"), budget: c.Text("budget_variable"),
	}
	if len(v.switches) > 0 {
		v.on, v.off = objectOf(c.Text("reasoning_on")), objectOf(c.Text("reasoning_off"))
	}
	for clause := range strings.SplitSeq(c.Text("past_reasoning"), "; ") {
		if name, _, ok := strings.Cut(clause, "="); ok {
			v.history = name
			break
		}
	}
	return v
}

// objectOf decodes a JSON object of the probe.
func objectOf(text string) (out map[string]any) {
	_ = json.Unmarshal([]byte(text), &out)
	return out
}
