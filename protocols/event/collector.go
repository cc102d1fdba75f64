// SPDX-License-Identifier: Apache-2.0

package event

// Block is an output block of an [Answer].
type Block struct {
	Kind      Kind   // Reasoning, Text, Refusal, ToolStart (a call), ToolAbort (an aborted call), ToolResult or Opaque
	Flags     Flags  // of the call; includes Complete once it has ended
	Why       Why    // of an aborted call
	Call      int32  // ordinal of the call; -1 for other blocks
	Name      string // tool name
	ID        string // call ID from the producer; Opaque: type
	Data      []byte // reasoning, text, refusal or the exact argument text; owned by the Collector
	Signature []byte // of reasoning; with the flag Encrypted, its encrypted form

	Annotations [][]byte // of text, each a JSON object

	part  int32
	named bool // there was a ToolStart
}

// Answer is one collected choice. Its blocks are in the order in which the model generated them.
type Answer struct {
	Blocks   []Block
	Finish   Why      // None while the choice is open
	Stop     []byte   // the stop sequence, when Finish is StopSequence
	Logprobs [][]byte // JSON arrays, unmodified
}

// Collector builds complete responses from events. Adjacent deltas of one part are merged into one block; order is
// preserved. The zero value is ready for use. A Collector copies everything that it keeps. It is not safe for
// concurrent use.
type Collector struct {
	// Answers are indexed by choice. An answer exists from the first event of its choice on, normally event.Start: the
	// slice is empty before, and if the response only has an Error event.
	Answers []Answer
	Usage   Tokens // counts of the last event that has any
	Err     Why    // class of the Error event, or None
	Message string // public message of the Error event
	Code    string // machine-readable code of the Error event, or ""
}

// Add adds events, in order. Events of unknown kinds are skipped.
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
		a.open(Block{Kind: ToolStart, Flags: e.Flags, Call: e.Call, Name: string(e.Data), ID: string(e.ID), part: e.Part, named: true})
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

// maxChoices bounds the allocation that a single large Choice can cause; OpenAI allows 128 choices.
const maxChoices = 1024

func (c *Collector) answer(choice int32) *Answer {
	for int(choice) >= len(c.Answers) {
		c.Answers = append(c.Answers, Answer{})
	}
	return &c.Answers[choice]
}

// Cut reports whether b is a call that was aborted after its name: it was cut off or is malformed. Its arguments may be
// incomplete.
func (b *Block) Cut() bool { return b.Kind == ToolAbort && b.named }

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

// call finds an open call by its ordinal, because parallel calls may interleave their arguments. A complete call is
// closed, since it may have been dispatched.
func (a *Answer) call(n int32) *Block {
	for i := len(a.Blocks) - 1; i >= 0; i-- {
		if b := &a.Blocks[i]; b.Kind == ToolStart && b.Call == n && !b.Flags.Has(Complete) {
			return b
		}
	}
	return nil
}

// Text returns the visible text of a, the concatenation of its text blocks.
func (a *Answer) Text() string { return a.join(Text) }

// Reasoning returns the reasoning of a, the concatenation of its reasoning blocks.
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

// Calls returns the complete calls of a that the client should execute. Calls in reasoning and calls that the server
// runs itself are left out.
func (a *Answer) Calls() []Block {
	var out []Block
	for _, b := range a.Blocks {
		if b.Kind == ToolStart && b.Flags.Has(Complete) && b.Flags&(InReasoning|Server) == 0 {
			out = append(out, b)
		}
	}
	return out
}
