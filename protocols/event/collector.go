// SPDX-License-Identifier: Apache-2.0

package event

// Block is one output block of a collected answer.
type Block struct {
	Kind      Kind   // Reasoning, Text, Refusal, ToolStart (a call), ToolAbort (an aborted call), ToolResult or Opaque
	Flags     Flags  // of the call, Complete included once it ended
	Why       Why    // of an aborted call
	Call      int32  // ordinal of the call, -1 outside one
	Name      string // tool name
	ID        string // call id as the producer gave it; Opaque: type
	Data      []byte // reasoning, text, refusal or the exact argument text; owned by the Collector
	Signature []byte // of reasoning; with the flag Encrypted, its encrypted form

	Annotations [][]byte // of text, each a JSON object

	part int32
}

// Answer is one collected choice: its blocks in the order in which the model wrote them.
type Answer struct {
	Blocks   []Block
	Finish   Why      // None while the choice is open
	Stop     []byte   // the stop sequence, when Finish is StopSequence
	Logprobs [][]byte // JSON arrays as they came
}

// Collector builds whole answers from events. Adjacent deltas of one part become one block; order is kept.
// The zero value is ready for use. It copies everything it keeps. One goroutine at a time.
type Collector struct {
	Answers []Answer // by choice
	Usage   Tokens   // the last counts seen
	Err     Why      // class of the Error event, or None
	Message string   // public message of the Error event
	Code    string   // machine-readable code of the Error event, "" if it has none
}

// Reset forgets everything and keeps the memory for the next response; blocks handed out before are overwritten.
func (c *Collector) Reset() { *c = Collector{Answers: c.Answers[:0]} }

// Add takes in events, in order. Events of kinds it does not know are skipped.
func (c *Collector) Add(events ...Event) {
	for i := range events {
		c.add(&events[i])
	}
}

func (c *Collector) add(e *Event) {
	switch e.Kind {
	case Start, Usage:
		if e.Usage != nil {
			c.Usage = *e.Usage
		}
		if e.Kind == Start && e.Choice >= 0 && e.Choice < maxChoices {
			c.answer(e.Choice)
		}
		return
	case Error:
		c.Err, c.Message, c.Code = e.Why, string(e.Data), string(e.ID)
		return
	}
	if e.Choice < 0 || e.Choice >= maxChoices {
		return
	}
	a := c.answer(e.Choice)
	switch e.Kind {
	case Reasoning, Text, Refusal:
		b := a.last()
		if b == nil || b.Kind != e.Kind || b.part != e.Part {
			b = a.open(Block{Kind: e.Kind, Call: -1, part: e.Part})
		}
		b.Data = append(b.Data, e.Data...)
		b.Flags |= e.Flags
	case Signature:
		b := a.last()
		if b == nil || b.Kind != Reasoning || b.part != e.Part {
			b = a.open(Block{Kind: Reasoning, Call: -1, part: e.Part})
		}
		b.Signature = append(b.Signature, e.Data...)
		b.Flags |= e.Flags
	case Annotation:
		if b := a.last(); b != nil && b.Kind == Text {
			b.Annotations = append(b.Annotations, append([]byte(nil), e.Data...))
		}
	case ToolStart:
		a.open(Block{Kind: ToolStart, Flags: e.Flags, Call: e.Call, Name: string(e.Data), ID: string(e.ID), part: e.Part})
	case ToolArgs:
		if b := a.call(e.Call); b != nil {
			b.Data = append(b.Data, e.Data...)
		}
	case ToolEnd:
		if b := a.call(e.Call); b != nil {
			b.Flags |= e.Flags
		}
	case ToolAbort:
		if b := a.call(e.Call); b != nil {
			b.Kind, b.Why = ToolAbort, e.Why
			b.Flags = (b.Flags | e.Flags) &^ Complete
			return
		}
		a.open(Block{Kind: ToolAbort, Flags: e.Flags, Why: e.Why, Call: e.Call, Name: string(e.Data), part: e.Part})
	case ToolResult, Opaque:
		a.open(Block{Kind: e.Kind, Flags: e.Flags, Call: -1, ID: string(e.ID), Data: append([]byte(nil), e.Data...), part: e.Part})
	case Logprobs:
		a.Logprobs = append(a.Logprobs, append([]byte(nil), e.Data...))
	case Finish:
		a.Finish, a.Stop = e.Why, append([]byte(nil), e.Data...)
	}
}

// maxChoices bounds what a stray Choice can make the Collector allocate; OpenAI allows 128.
const maxChoices = 1024

func (c *Collector) answer(choice int32) *Answer {
	for int(choice) >= len(c.Answers) {
		c.Answers = append(c.Answers, Answer{})
	}
	return &c.Answers[choice]
}

func (a *Answer) last() *Block {
	if len(a.Blocks) == 0 {
		return nil
	}
	return &a.Blocks[len(a.Blocks)-1]
}

func (a *Answer) open(b Block) *Block {
	a.Blocks = append(a.Blocks, b)
	return a.last()
}

// call finds an open call by its ordinal: parallel calls may interleave their arguments. A complete call is closed, as it
// may have been dispatched.
func (a *Answer) call(n int32) *Block {
	for i := len(a.Blocks) - 1; i >= 0; i-- {
		if b := &a.Blocks[i]; b.Kind == ToolStart && b.Call == n && !b.Flags.Has(Complete) {
			return b
		}
	}
	return nil
}

// Text returns the visible text of a: its text blocks joined.
func (a *Answer) Text() string { return a.join(Text) }

// Reasoning returns the reasoning of a: its reasoning blocks joined.
func (a *Answer) Reasoning() string { return a.join(Reasoning) }

func (a *Answer) join(k Kind) string {
	var s []byte
	for i := range a.Blocks {
		if a.Blocks[i].Kind == k {
			s = append(s, a.Blocks[i].Data...)
		}
	}
	return string(s)
}

// Calls returns the complete calls of a that the client is to execute: those written outside reasoning, of tools that the
// serving side does not run itself.
func (a *Answer) Calls() []Block {
	var out []Block
	for _, b := range a.Blocks {
		if b.Kind == ToolStart && b.Flags.Has(Complete) && b.Flags&(InReasoning|Server) == 0 {
			out = append(out, b)
		}
	}
	return out
}
