// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Capabilities describes what a template does with conversations, as found by [Probe]. A feature is reported only
// if a rendering showed it; the zero value describes a template that renders nothing.
type Capabilities struct {
	works, system, systemMiddle, systemAfterUser, developer          bool
	consecutiveUsers, consecutiveAssistants, assistantFirst, noUser  bool
	tools, toolsFirst, toolCalls, flatCalls, parallelCalls           bool
	stringArguments, objectArguments, mappings                       bool
	toolRole, callIDs, shortIDs                                      bool
	emptyTools                                                       bool // the template fails if tools is None, but not if it is []
	nullContent, noContent                                           bool
	listSystem, listUser, listAssistant, listTool, images            bool
	reasoningInline, reasoningSegments, stripsInline                 bool
	opensReasoning, offByDefault, undecided                          bool
	systemAsks, developerAsks                                        bool
	reasoningNoUser, blankReasoning, closesDirectly, reasoningOrText bool

	reasoningKey, pastReasoning, omittedReasoning string
	separators                                    map[string]string // by role, for those that take lists
	reasoningSwitches                             []setting         // that turn reasoning on and off; the first takes precedence
	effortVariable, budgetVariable                string

	generationPrompt, switchedOff string
	fault                         string
	efforts                       string // of effortVariable, separated by spaces, weakest first; "" if the template accepts all
}

// Has reports whether a template has a feature. It panics if there is no feature of that name.
//
//	works                   a conversation of one user message can be rendered
//	system                  a system message at the beginning is printed
//	system_middle           one after a response is printed, at its position
//	system_after_user       one after a user message or tool results is printed too, before the assistant's turn begins
//	developer               a message of role developer is printed, unlike one of the role system or of an unknown role
//	consecutive_users       two user messages in a row are both printed, and the assistant's turn does not begin between
//	consecutive_assistants  two messages of the assistant in a row are both printed
//	assistant_first         a conversation may begin with the assistant
//	no_user                 a conversation needs no user message
//	tools                   definitions of tools are printed
//	tools_first             they are printed before the system text
//	tool_calls              past calls in OpenAI's form are printed
//	flat_calls              calls without the "function" level are printed
//	parallel_calls          several calls of one message are printed
//	string_arguments        arguments given as a string are printed unchanged
//	object_arguments        arguments given as an object are printed, in whatever form
//	mappings                both are printed, an object in another form than JSON
//	tool_role               messages of role tool are printed
//	call_ids                IDs of past calls are printed, with the calls or with their results
//	short_ids               IDs of past calls must be nine letters and digits, as in the templates of Mistral
//	null_content            a message with calls whose content is null is printed like one with empty content
//	no_content              the same without content
//	list_system             content given as a list of text parts is printed as text, in a message of that role; likewise
//	list_user
//	list_assistant
//	list_tool
//	images                  an image part of a user message is printed
//	reasoning_inline        no key is read, but reasoning inside the content, between <think> and </think>, is printed
//	reasoning_segments      reasoning given as a list, an entry before each call, is printed between the calls
//	reasoning_or_text       a message with calls may have reasoning or content, but not both, as in gpt-oss
//	reasoning_no_user       past reasoning is printed in a conversation without a user message
//	closes_directly         past reasoning is printed with its own last newline, and the closing tag directly after it
//	strips_inline           reasoning inside the content is dropped from answers before the last user message
//	opens_reasoning         the generation prompt ends inside reasoning
//	off_by_default          reasoning is off unless a switch turns it on; past_reasoning begins with it on
//	undecided               without a switch, the prompt turns reasoning neither on nor off
//	system_asks             a system message after tool results counts as a user message: reasoning before it is dropped
//	developer_asks          the same for a developer message
//	blank_reasoning         with reasoning off, the prompt of an open chain of calls extends the previous prompt only if
//	                        a line end takes the place of missing reasoning, as in Qwen3, which then prints empty tags
func (c *Capabilities) Has(feature string) bool {
	f, ok := features[feature]
	if !ok {
		panic("template: no feature " + feature)
	}
	return f(c)
}

var features = map[string]func(*Capabilities) bool{
	"works":                  func(c *Capabilities) bool { return c.works },
	"system":                 func(c *Capabilities) bool { return c.system },
	"system_middle":          func(c *Capabilities) bool { return c.systemMiddle },
	"system_after_user":      func(c *Capabilities) bool { return c.systemAfterUser },
	"developer":              func(c *Capabilities) bool { return c.developer },
	"consecutive_users":      func(c *Capabilities) bool { return c.consecutiveUsers },
	"consecutive_assistants": func(c *Capabilities) bool { return c.consecutiveAssistants },
	"assistant_first":        func(c *Capabilities) bool { return c.assistantFirst },
	"no_user":                func(c *Capabilities) bool { return c.noUser },
	"tools":                  func(c *Capabilities) bool { return c.tools },
	"tools_first":            func(c *Capabilities) bool { return c.toolsFirst },
	"tool_calls":             func(c *Capabilities) bool { return c.toolCalls },
	"flat_calls":             func(c *Capabilities) bool { return c.flatCalls },
	"parallel_calls":         func(c *Capabilities) bool { return c.parallelCalls },
	"string_arguments":       func(c *Capabilities) bool { return c.stringArguments },
	"object_arguments":       func(c *Capabilities) bool { return c.objectArguments },
	"mappings":               func(c *Capabilities) bool { return c.mappings },
	"tool_role":              func(c *Capabilities) bool { return c.toolRole },
	"call_ids":               func(c *Capabilities) bool { return c.callIDs },
	"short_ids":              func(c *Capabilities) bool { return c.shortIDs },
	"null_content":           func(c *Capabilities) bool { return c.nullContent },
	"no_content":             func(c *Capabilities) bool { return c.noContent },
	"list_system":            func(c *Capabilities) bool { return c.listSystem },
	"list_user":              func(c *Capabilities) bool { return c.listUser },
	"list_assistant":         func(c *Capabilities) bool { return c.listAssistant },
	"list_tool":              func(c *Capabilities) bool { return c.listTool },
	"images":                 func(c *Capabilities) bool { return c.images },
	"reasoning_inline":       func(c *Capabilities) bool { return c.reasoningInline },
	"reasoning_segments":     func(c *Capabilities) bool { return c.reasoningSegments },
	"reasoning_or_text":      func(c *Capabilities) bool { return c.reasoningOrText },
	"reasoning_no_user":      func(c *Capabilities) bool { return c.reasoningNoUser },
	"closes_directly":        func(c *Capabilities) bool { return c.closesDirectly },
	"strips_inline":          func(c *Capabilities) bool { return c.stripsInline },
	"opens_reasoning":        func(c *Capabilities) bool { return c.opensReasoning },
	"off_by_default":         func(c *Capabilities) bool { return c.offByDefault },
	"undecided":              func(c *Capabilities) bool { return c.undecided },
	"system_asks":            func(c *Capabilities) bool { return c.systemAsks },
	"developer_asks":         func(c *Capabilities) bool { return c.developerAsks },
	"blank_reasoning":        func(c *Capabilities) bool { return c.blankReasoning },
}

// Text returns what a template prints or reads, "" if it does not. It panics if name is none of these.
//
//	reasoning_key          the key of a message whose reasoning is printed: reasoning_content, reasoning or thinking; see also
//	                       the feature reasoning_inline
//	reasoning_switches     the variables that turn reasoning on and off, such as enable_thinking, separated by spaces; the first
//	                       takes precedence if several are set
//	reasoning_on           the first of them with the value that turns reasoning on, as a JSON object: {"thinking_mode":"enabled"}
//	reasoning_off          the same with the value that turns it off
//	effort_variable        the variable that is the effort of reasoning, such as reasoning_effort; see [Capabilities.NearestEffort]
//	budget_variable        the variable that limits the tokens of reasoning, such as thinking_budget, if the prompt of a later
//	                       question keeps what is printed for it
//	past_reasoning         the conversations in which past reasoning is printed, see below
//	omitted_reasoning      what is printed in place of past reasoning that is dropped: tags such as <think></think>
//	separator_system       what is printed between the text parts of a message of that role; likewise
//	separator_user
//	separator_assistant
//	separator_tool
//	generation_prompt      what AddGenerationPrompt appends to a conversation that ends with the user
//	generation_prompt_off  the same with reasoning_off, if there are any switches
//	fault                  an error of the template itself: it calls a method that Jinja's immutable sandbox hides, such as
//	                       append. transformers refuses to render the conversations that reach this place
//
// The text past_reasoning describes the conversations that the probe rendered, separated by spaces. Each turn is a
// letter: u for the user, t for tool results, a for a response without calls and c for one with calls; upper case means
// that its reasoning was printed. Clauses for other conditions follow if they differ: with tools, with the first of
// reasoning_switches turned off, and with the values of a variable that changes the output, the one that prints more
// first:
//
//	uau uCt uauA; tools: uAu uCt uAuA; off: uau uct uaua; off tools: …; clear_thinking=false: …; clear_thinking=true: …
//
// Package replay of module protocols infers a rule from it.
func (c *Capabilities) Text(name string) string {
	switch name {
	case "reasoning_key":
		return c.reasoningKey
	case "reasoning_switches":
		var names []string
		for _, s := range c.reasoningSwitches {
			names = append(names, s.name)
		}
		return strings.Join(names, " ")
	case "reasoning_on":
		return c.reasoningSwitch().kwargs(true)
	case "reasoning_off":
		return c.reasoningSwitch().kwargs(false)
	case "effort_variable":
		return c.effortVariable
	case "budget_variable":
		return c.budgetVariable
	case "past_reasoning":
		return c.pastReasoning
	case "omitted_reasoning":
		return c.omittedReasoning
	case "separator_system", "separator_user", "separator_assistant", "separator_tool":
		return c.separators[strings.TrimPrefix(name, "separator_")]
	case "fault":
		return c.fault
	case "generation_prompt":
		return c.generationPrompt
	case "generation_prompt_off":
		if len(c.reasoningSwitches) > 0 {
			return c.switchedOff
		}
		return c.generationPrompt
	}
	panic("template: no text " + name)
}

func (c *Capabilities) takesList(role string) bool {
	switch role {
	case "system", "developer":
		return c.listSystem
	case "assistant":
		return c.listAssistant
	case "tool", "function":
		return c.listTool
	}
	return c.listUser
}

// Probe returns what a template does, as found by rendering some hundred small conversations: 4 to 16 ms for
// the templates of today's models. It is deterministic. For a Jinja template it describes the template itself,
// before messages are adapted, and the result is kept with the template.
func Probe(t Template) Capabilities {
	switch t := t.(type) {
	case *compiled:
		return *t.caps()
	case chatML:
		if t.opt.system == "" { // the other options have few values
			c, ok := chatMLCaps.Load(t.opt)
			if !ok {
				c, _ = chatMLCaps.LoadOrStore(t.opt, probe(t))
			}
			return c.(Capabilities)
		}
	}
	return probe(t)
}

// chatMLCaps contains the Capabilities of the format chatml by its chatMLOptions.
var chatMLCaps sync.Map

type prober struct {
	t     Template
	vars  []string // that it may read
	fault *string  // the first error of the kind of Capabilities.Text("fault")
}

// try renders messages with the other fields of a request, if given; ok is false if that fails.
func (p prober) try(messages, tools, kwargs string, open bool) (text string, ok bool) {
	r, err := p.t.Render(Request{
		Messages: []byte("[" + messages + "]"), Tools: []byte(tools), Kwargs: []byte(kwargs), AddGenerationPrompt: open,
		Now: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.unsafe && *p.fault == "" {
			*p.fault = e.place + ": " + e.reason
		}
		return "", false
	}
	return r.Text, true
}

// prints reports whether messages can be rendered and the prompt contains all words.
func (p prober) prints(messages string, words ...string) bool {
	text, ok := p.try(messages, "", "", false)
	return ok && inOrder(text, words)
}

func inOrder(text string, words []string) bool {
	for _, w := range words {
		k := strings.Index(text, w)
		if k < 0 {
			return false
		}
		text = text[k+len(w):]
	}
	return true
}

const (
	probeSystem = `{"role":"system","content":"Zqsystem"},`
	probeUser   = `{"role":"user","content":"Zquser"},`
	probeAgain  = `,{"role":"user","content":"Zqagain"}`
	probeAnswer = `{"role":"assistant","content":"Zqanswer"}`
	probeTools  = `[{"type":"function","function":{"name":"zqtool","description":"Zqdescription","parameters":{"type":"object","properties":{"zqkey":{"type":"string","description":"Zqparameter"}},"required":["zqkey"]}}}]`
	probeResult = `,{"role":"tool","tool_call_id":"zqcall001","name":"zqtool","content":"Zqresult"}`
)

// probeCall is an assistant's message with calls. content is JSON with its key and a comma, or empty.
func probeCall(content string, flat bool, arguments ...string) string {
	var b strings.Builder
	b.WriteString(`{"role":"assistant",` + content + `"tool_calls":[`)
	for i, a := range arguments {
		if i > 0 {
			b.WriteByte(',')
		}
		id := `"zqcall00` + string(rune('1'+i)) + `"`
		if flat {
			b.WriteString(`{"id":` + id + `,"type":"function","name":"zqtool","arguments":` + a + `}`)
		} else {
			b.WriteString(`{"id":` + id + `,"type":"function","function":{"name":"zqtool","arguments":` + a + `}}`)
		}
	}
	b.WriteString("]}")
	return b.String()
}

func probe(t Template) (c Capabilities) {
	p := prober{t, variablesOf(t), &c.fault}
	user := strings.TrimSuffix(probeUser, ",")
	closed, ok := p.try(user, "", "", false)
	if j, isJinja := t.(*compiled); isJinja && !ok {
		listed := *j
		listed.emptyTools = true
		q := p
		q.t = &listed
		if closed, ok = q.try(user, "", "", false); ok {
			p, c.emptyTools = q, true
		}
	}
	c.works = ok && strings.Contains(closed, "Zquser")
	c.system = p.prints(probeSystem+user, "Zqsystem", "Zquser") || p.prints(probeSystem+user, "Zquser", "Zqsystem")
	c.systemMiddle = p.prints(probeUser+probeAnswer+`,{"role":"system","content":"Zqmiddle"}`+probeAgain, "Zqanswer", "Zqmiddle", "Zqagain")
	p.turns(&c, closed)
	c.consecutiveAssistants = p.prints(probeUser+probeAnswer+`,{"role":"assistant","content":"Zqmore"}`+probeAgain, "Zqanswer", "Zqmore", "Zqagain")
	c.assistantFirst = p.prints(probeAnswer+probeAgain, "Zqanswer", "Zqagain")
	c.noUser = p.prints(strings.TrimSuffix(probeSystem, ","), "Zqsystem")

	text, ok := p.try(user, probeTools, "", true)
	c.tools = ok && strings.Contains(text, "zqtool")
	text, ok = p.try(probeSystem+user, probeTools, "", true)
	at := strings.Index(text, "zqtool")
	c.toolsFirst = ok && at >= 0 && at < strings.Index(text, "Zqsystem")

	// Calls: with results after them, since some templates want these.
	const object, str = `{"zqkey":"Zqvalue"}`, `"{\"zqkey\":   \"Zqvalue\"}"`
	calls := func(content string, flat bool, args ...string) (string, bool) {
		return p.try(probeUser+probeCall(content, flat, args...)+probeResult, probeTools, "", true)
	}
	const blank = `"content":"",`
	text, ok = calls(blank, false, object)
	c.objectArguments = ok && strings.Contains(text, "zqtool") && strings.Contains(text, "Zqvalue")
	base := text
	form := object
	asString, ok := calls(blank, false, str)
	c.stringArguments = ok && strings.Contains(asString, `{"zqkey":   "Zqvalue"}`)
	if !c.objectArguments && c.stringArguments {
		form, base = str, asString
	}
	c.mappings = c.objectArguments && c.stringArguments && !strings.Contains(base, `{"zqkey": "Zqvalue"}`) && !strings.Contains(base, `{"zqkey":"Zqvalue"}`)
	c.toolCalls = c.objectArguments || c.stringArguments
	if !c.toolCalls {
		text, ok = calls(blank, true, object)
		c.flatCalls = ok && strings.Contains(text, "Zqvalue")
		c.objectArguments = c.flatCalls
		asString, ok = calls(blank, true, str)
		c.stringArguments = ok && strings.Contains(asString, `{"zqkey":   "Zqvalue"}`)
		c.flatCalls = c.flatCalls || c.stringArguments
		base = text
		if !c.objectArguments && c.stringArguments {
			form, base = str, asString
		}
	} else {
		text, ok = calls(blank, true, form)
		c.flatCalls = ok && strings.Contains(text, "Zqvalue")
	}
	flat := !c.toolCalls
	if c.toolCalls || c.flatCalls {
		c.toolRole = strings.Contains(base, "Zqresult")
		c.callIDs = strings.Contains(base, "zqcall001")
		if c.toolRole {
			p.afterResults(&c, probeUser+probeCall(blank, flat, form)+probeResult)
		}
		_, ok = p.try(strings.ReplaceAll(probeUser+probeCall(blank, flat, form)+probeResult, "zqcall001", "zq-call_0123456789abcdef"), probeTools, "", true)
		c.shortIDs = !ok // the same conversation could be rendered with an id of nine letters and digits
		text, ok = p.try(probeUser+probeCall(blank, flat, form, strings.ReplaceAll(form, "Zqvalue", "Zqsecond"))+probeResult+
			`,{"role":"tool","tool_call_id":"zqcall002","name":"zqtool","content":"Zqother"}`, probeTools, "", true)
		c.parallelCalls = ok && inOrder(text, []string{"Zqvalue", "Zqsecond"})
		text, ok = calls(`"content":null,`, flat, form)
		c.nullContent = ok && text == base
		text, ok = calls("", flat, form)
		c.noContent = ok && text == base
	}

	// Lists of parts.
	const parts = `"content":[{"type":"text","text":"Zqone"},{"type":"text","text":"Zqtwo"}]`
	list := func(before, role, more, after string) bool {
		text, ok := p.try(before+`{"role":"`+role+`",`+more+parts+`}`+after, "", "", false)
		if !ok || !inOrder(text, []string{"Zqone", "Zqtwo"}) || strings.Contains(text, `'text'`) || strings.Contains(text, `"text"`) {
			return false
		}
		_, between, _ := strings.Cut(text, "Zqone")
		between, _, _ = strings.Cut(between, "Zqtwo")
		if strings.Trim(between, " \n") != "" { // each part is a message of its own
			between = "\n"
		}
		if c.separators == nil {
			c.separators = map[string]string{}
		}
		c.separators[role] = between
		return true
	}
	c.listUser = list("", "user", "", "")
	c.listSystem = list("", "system", "", ","+user)
	c.listAssistant = list(probeUser, "assistant", "", probeAgain)
	if c.toolRole {
		c.listTool = list(probeUser+probeCall(blank, flat, form)+",", "tool", `"tool_call_id":"zqcall001","name":"zqtool",`, "")
	}
	if c.listUser {
		one, ok1 := p.try(`{"role":"user","content":[{"type":"text","text":"Zqone"}]}`, "", "", false)
		two, ok2 := p.try(`{"role":"user","content":[{"type":"image"},{"type":"text","text":"Zqone"}]}`, "", "", false)
		c.images = ok1 && ok2 && one != two
	}

	// The generation prompt.
	if open, ok := p.try(user, "", "", true); ok {
		c.generationPrompt, _ = strings.CutPrefix(open, closed)
		c.opensReasoning = opensReasoning(open)
	}
	p.switches(&c, user, form, flat)
	p.reasoning(&c, form, flat)
	return c
}

// openers lists the marks that begin reasoning in the known families.
var openers = []string{"<think>", "<thinking>", "[THINK]", "<|channel>thought", "<seed:think>", "<|START_THINKING|>", "<|inner_prefix|>", "<mm:think>", "◁think▷"}

func opensReasoning(prompt string) bool {
	prompt = strings.TrimRight(prompt, " \n")
	return slices.ContainsFunc(openers, func(o string) bool { return strings.HasSuffix(prompt, o) })
}
