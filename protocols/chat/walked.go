// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"maps"
	"slices"
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// Walked records which messages [WalkNext] made of each turn of a request. It is immutable and does not refer to the
// request.
type Walked struct {
	opt    RenderOptions // without functions and Places
	turns  []walkedTurn
	losses []block.Loss // of the messages
}

// walkedTurn is a turn and the state before it.
type walkedTurn struct {
	origin   *seam.Origin // nil after the last turn
	messages int32        // written before the turn; -1 if the messages of the turns before it also contain parts of it
	losses   int32
	system   bool // all turns up to this one are system text
	past     past // results of RenderOptions.Past
}

type past struct{ keep, blank bool }

// WalkNext is [Walk] for a request that was decoded with the help of an earlier one of the same conversation, by
// DecodeNext of package wire. before is the result for the earlier request, or nil. Messages that are the same are not
// passed to fn again. Instead, fn is called with the kind '^' and a decimal number n: the first n messages equal
// the earlier request's, as far as they were not passed yet. RenderOptions.Call is called for their calls as well, and must
// return the same as for the earlier request. The blocks of these messages have no position in RenderOptions.Places.
// Messages with cache breakpoints, and all that Breakpoints of package wire has not examined, are passed.
//
// The result is nil if no later call can use it.
func WalkNext(r *block.Request, before *Walked, fn func(kind byte, text string), opt *RenderOptions) (*Walked, []block.Loss) {
	w := renderer{r: r, out: values{fn: fn}, walked: &Walked{}}
	if opt != nil {
		w.opt = *opt
	}
	w.walked.opt = w.opt
	w.walked.opt.Past, w.walked.opt.Call, w.walked.opt.Places = nil, nil, nil
	w.recall(before)
	losses := w.walk()
	return w.walked, losses
}

// recall determines which turns the request begins with as the one of before.
func (w *renderer) recall(before *Walked) {
	origins := codec.OriginsOf(w.r)
	deferred := slices.ContainsFunc(w.r.Tools(), func(t block.Tool) bool { return t.Deferred })
	if origins == nil || w.opt.System == SystemMerge || deferred { // other turns determine what is written of a turn
		w.walked = nil
		return
	}
	turns := w.r.Turns()
	list := make([]walkedTurn, len(turns)+1)
	system := true
	for i := range turns {
		t := &list[i]
		t.origin, t.messages = origins[i], -1
		switch turns[i].Role {
		case block.RoleSystem, block.RoleDeveloper:
		case block.RoleAssistant:
			if system = false; w.opt.Past != nil {
				t.past.keep, t.past.blank = w.opt.Past(i)
			}
		default:
			system = false
		}
		t.system = system
	}
	list[len(turns)].messages = -1
	w.walked.turns = list
	if before == nil || !before.opt.equal(&w.walked.opt) {
		return
	}
	// System text at the beginning may be another, but not another number of turns.
	n := 0
	for n < len(turns) && n < len(before.turns)-1 && list[n].system && before.turns[n].system {
		n++
	}
	for n < len(turns) && n < len(before.turns)-1 && !list[n].system && list[n].origin != nil &&
		list[n].origin == before.turns[n].origin && list[n].past == before.turns[n].past {
		n++
	}
	w.before, w.same = before, n
}

// equal compares options without functions and Places.
func (o *RenderOptions) equal(p *RenderOptions) bool {
	if (o.Inline == nil) != (p.Inline == nil) || o.Inline != nil && *o.Inline != *p.Inline {
		return false
	}
	return o.ReasoningSegments == p.ReasoningSegments && o.KeepDeveloper == p.KeepDeveloper && o.Arguments == p.Arguments &&
		o.TextOnly == p.TextOnly && o.System == p.System && maps.Equal(o.Separators, p.Separators)
}

// skip takes over messages of the earlier request if it can. It returns the number of the next turn to write.
func (w *renderer) skip(turns []block.Turn, i int) int {
	if w.walked == nil {
		return i
	}
	now := &w.walked.turns[i]
	now.messages, now.losses = int32(w.n), int32(len(w.losses))
	if w.before == nil || i >= w.same || now.system || w.before.turns[i].messages != now.messages {
		return i
	}
	end := i
	for k := i; k < w.same && w.walked.turns[k].origin.Unmarked.Load(); k++ {
		if k+1 < len(turns) && turns[k+1].Role == block.RoleAssistant && w.before.turns[k+1].messages >= 0 {
			end = k + 1
		}
	}
	if end == i {
		return i
	}
	from, to := &w.before.turns[i], &w.before.turns[end]
	for k := i; k < end; k++ {
		if t := &w.before.turns[k]; t.messages >= 0 {
			w.walked.turns[k].messages, w.walked.turns[k].losses = t.messages, now.losses+t.losses-from.losses
		}
		w.recalled(&turns[k])
	}
	w.n = int(to.messages)
	w.losses = append(w.losses, w.before.losses[from.losses:to.losses]...)
	if w.out.fn != nil {
		w.out.fn('^', strconv.Itoa(w.n))
	}
	w.walked.turns[end].messages, w.walked.turns[end].losses = int32(w.n), int32(len(w.losses))
	return end
}

// recalled calls RenderOptions.Call for the calls of a turn that is not written.
func (w *renderer) recalled(t *block.Turn) {
	if w.opt.Call == nil || t.Role != block.RoleAssistant {
		return
	}
	for k := range t.Blocks {
		b := &t.Blocks[k]
		if b.Kind == block.ServerItem {
			if call, ok := rawCall(b); ok {
				b = &call
			}
		}
		if b.Kind == block.ToolCall {
			w.opt.Call(b.CallID, argsOf(b))
		}
	}
}
