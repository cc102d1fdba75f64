// SPDX-License-Identifier: Apache-2.0

package sdk_test

import "github.com/weft-go/weft/protocols/event"

// A script writes the events of a response. Each method adds events and returns the script.
type script struct {
	events []event.Event
	on     int32 // choice that is being written
	state  map[int32]*scriptState
}

type scriptState struct {
	part  int32
	calls int32
	kind  event.Kind // of the open part
}

// begin starts a response.
func begin(u event.Tokens) *script {
	s := &script{state: map[int32]*scriptState{}}
	s.events = append(s.events, event.Event{Kind: event.Start, Call: -1, Usage: &u})
	return s
}

// choice continues with another of n choices.
func (s *script) choice(n int32) *script { s.on = n; return s }

func (s *script) at() *scriptState {
	if s.state[s.on] == nil {
		s.state[s.on] = &scriptState{part: -1}
	}
	return s.state[s.on]
}

// next opens another part even if the kind stays.
func (s *script) next() *script { s.at().kind = 0; return s }

func (s *script) add(e event.Event) *script {
	e.Choice, e.Part = s.on, s.at().part
	s.events = append(s.events, e)
	return s
}

func (s *script) deltas(k event.Kind, texts []string) *script {
	if a := s.at(); a.kind != k {
		a.kind = k
		a.part++
	}
	for _, x := range texts {
		s.add(event.Event{Kind: k, Call: -1, Data: []byte(x)})
	}
	return s
}

func (s *script) think(texts ...string) *script  { return s.deltas(event.Reasoning, texts) }
func (s *script) text(texts ...string) *script   { return s.deltas(event.Text, texts) }
func (s *script) refuse(texts ...string) *script { return s.deltas(event.Refusal, texts) }

// sign signs the open reasoning, or opens reasoning without text.
func (s *script) sign(texts ...string) *script {
	if s.at().kind != event.Reasoning {
		s.think()
	}
	for _, x := range texts {
		s.add(event.Event{Kind: event.Signature, Call: -1, Data: []byte(x)})
	}
	return s
}

func (s *script) note(json string) *script {
	return s.add(event.Event{Kind: event.Annotation, Call: -1, Data: []byte(json)})
}

func (s *script) probs(json string) *script {
	return s.add(event.Event{Kind: event.Logprobs, Call: -1, Data: []byte(json)})
}

// open starts a call and leaves it open; its ordinal is counted within the choice.
func (s *script) open(f event.Flags, name, id string, args ...string) *script {
	a := s.at()
	a.part++
	a.kind = event.ToolStart
	n := a.calls
	a.calls++
	s.add(event.Event{Kind: event.ToolStart, Flags: f, Call: n, Data: []byte(name), ID: []byte(id)})
	return s.args(n, args...)
}

func (s *script) args(call int32, args ...string) *script {
	for _, x := range args {
		s.add(event.Event{Kind: event.ToolArgs, Call: call, Data: []byte(x)})
	}
	return s
}

func (s *script) end(call int32) *script {
	return s.add(event.Event{Kind: event.ToolEnd, Call: call, Flags: event.Complete})
}

func (s *script) abort(call int32, why event.Why) *script {
	return s.add(event.Event{Kind: event.ToolAbort, Call: call, Why: why})
}

// call makes a whole call.
func (s *script) call(name, id string, args ...string) *script {
	return s.flagged(0, name, id, args...)
}

func (s *script) flagged(f event.Flags, name, id string, args ...string) *script {
	s.open(f, name, id, args...)
	return s.end(s.at().calls - 1)
}

// nameless aborts a call whose name was never known.
func (s *script) nameless() *script {
	a := s.at()
	a.part++
	a.kind = event.ToolAbort
	a.calls++
	return s.abort(a.calls-1, event.BadName)
}

// other adds an item that events do not model.
func (s *script) other(k event.Kind, json string) *script {
	a := s.at()
	a.part++
	a.kind = k
	return s.add(event.Event{Kind: k, Call: -1, Data: []byte(json)})
}

func (s *script) usage(u event.Tokens) *script {
	s.events = append(s.events, event.Event{Kind: event.Usage, Call: -1, Usage: &u})
	return s
}

func (s *script) finish(why event.Why, stop ...string) *script {
	e := event.Event{Kind: event.Finish, Call: -1, Why: why}
	if len(stop) > 0 {
		e.Data = []byte(stop[0])
	}
	return s.add(e)
}

func (s *script) fail(why event.Why, message string) *script {
	s.events = append(s.events, event.Event{Kind: event.Error, Call: -1, Why: why, Data: []byte(message)})
	return s
}
