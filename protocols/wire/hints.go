// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// maxBreakpoints is the number of breakpoints that Anthropic's and OpenAI's APIs allow in a request.
const maxBreakpoints = 4

// Breakpoints returns the cache breakpoints of the request, the positions up to which it asks to keep its prompt, in
// the order of the prompt: tools, then turns. Marks are cache_control of the Messages API, also in tool results and on
// Chat parts, and OpenAI's prompt_cache_breakpoint. A cache_control of the whole request adds a breakpoint after the
// last block that can have one. Tokens are 0, because only the renderer of the prompt knows them. If there are more
// than 64 breakpoints, the last 64 are returned.
//
// The faults are malformed marks, which are honored as far as possible, and more than 4 marks, which both APIs reject.
// At most 64 malformed marks are reported, with their paths in the decoded body. [intent.Read] reports faults of the
// mark of the whole request.
func Breakpoints(r *block.Request) ([]intent.Breakpoint, []intent.Fault) {
	own := codec.CacheOf(codec.FieldOf(r, "cache_control"), nil)
	b := breakpoints{r: r}
	none := intent.Breakpoint{Tool: -1, Turn: -1, Block: -1, Inner: -1}
	tools := r.Tools()
	for i := range tools {
		t := &tools[i]
		if t.Cache != nil {
			p := none
			p.Tool = i
			b.add(p, t.Cache)
		}
		if len(b.faults) < maxFaults {
			b.check(t.Cache, t.At, codec.ToolMarks(r, t))
		}
	}
	turns, origins := r.Turns(), codec.OriginsOf(r)
	for i := range turns {
		var o *seam.Origin
		if origins != nil {
			o = origins[i]
		}
		if o != nil && o.Unmarked.Load() {
			continue
		}
		marked, faults := false, len(b.faults)
		for k := range turns[i].Blocks {
			blk := &turns[i].Blocks[k]
			p := none
			p.Turn, p.Block = i, k
			for n := range blk.Content {
				if inner := &blk.Content[n]; inner.Cache != nil {
					p.Inner, marked = n, true
					b.add(p, inner.Cache)
				}
			}
			if p.Inner = -1; blk.Cache != nil {
				marked = true
				b.add(p, blk.Cache)
			}
			b.checkBlock(&turns[i], blk)
		}
		if o != nil && !marked && len(b.faults) == faults && faults < maxFaults {
			o.Unmarked.Store(true)
		}
	}
	if own != nil && r.API() == block.Messages {
		if p, ok := lastMarkable(turns); ok {
			b.add(p, own)
		}
	}
	if n := len(b.list); n > maxBreakpoints {
		b.faults = append(b.faults, intent.NewFault("cache_control", strconv.Itoa(n), "more than 4 breakpoints"))
	}
	return b.list, b.faults
}

// lastMarkable returns a breakpoint after the last block that can have one, and reports whether there is such a block.
func lastMarkable(turns []block.Turn) (intent.Breakpoint, bool) {
	for i := len(turns) - 1; i >= 0; i-- {
		for k := len(turns[i].Blocks) - 1; k >= 0; k-- {
			if b := &turns[i].Blocks[k]; b.Kind != block.Reasoning && !(b.Kind == block.Text && b.Text == "") {
				return intent.Breakpoint{Tool: -1, Turn: i, Block: k, Inner: -1, Auto: true}, true
			}
		}
	}
	return intent.Breakpoint{}, false
}

// breakpoints collects the breakpoints and faults of a request.
type breakpoints struct {
	r      *block.Request
	list   []intent.Breakpoint
	faults []intent.Fault
}

// maxFaults is the maximum number of breakpoints, and of faults, that are reported.
const maxFaults = 64

func (b *breakpoints) add(p intent.Breakpoint, c *block.Cache) {
	p.TTL, _ = intent.ParseTTL(c.TTL)
	p.Scope = c.Scope
	if len(b.list) == maxFaults { // the last ones take precedence
		b.list = b.list[1:]
	}
	b.list = append(b.list, p)
}

// checkBlock reports malformed marks of a block and of its content, in the order of the prompt.
func (b *breakpoints) checkBlock(t *block.Turn, blk *block.Block) {
	for i := range blk.Content {
		b.checkBlock(t, &blk.Content[i])
	}
	if len(b.faults) < maxFaults {
		b.check(blk.Cache, blk.At, codec.BlockMarks(b.r, t, blk))
	}
	if blk.Kind == block.Reasoning && blk.Cache != nil && len(b.faults) < maxFaults {
		b.faults = append(b.faults, intent.NewFault(b.placed(blk.At, markNames[0]), "", "not allowed on reasoning"))
	}
}

// check reports faults of the mark c of the tool or block at the given position. v is its JSON value.
func (b *breakpoints) check(c *block.Cache, at block.Ref, v jsonscan.Value) {
	from := len(b.faults)
	b.faults = markFaults(b.faults, c, v)
	if len(b.faults) == from {
		return
	}
	for i := from; i < len(b.faults); i++ {
		b.faults[i].Where = b.placed(at, b.faults[i].Where)
	}
	b.faults = b.faults[:min(len(b.faults), maxFaults)]
}

// placed returns the path of a field of the tool or block at the given position.
func (b *breakpoints) placed(at block.Ref, member string) string {
	if path := codec.MarkPath(b.r, at); path != "" {
		return path + "." + member
	}
	return member
}

// Names of marks and of their text fields.
var (
	markNames   = [...]string{"cache_control", "prompt_cache_breakpoint"}
	markMembers = [...]string{"type", "mode", "ttl", "scope"}
)

// markFaults appends the faults of a mark c that was read from the fields of v. Their paths are relative to v.
func markFaults(dst []intent.Fault, c *block.Cache, v jsonscan.Value) []intent.Fault {
	of := ""
	for _, name := range markNames {
		m := v.Get(name)
		switch {
		case m.IsNull():
			continue
		case m.Kind() != jsonscan.Object:
			dst = append(dst, intent.NewFault(name, m.RawStr(), "not an object"))
			continue
		case c == nil || of != "": // not used
			continue
		}
		of = name
		for _, key := range markMembers {
			text := m.Get(key)
			_, whole := text.Int()
			if text.IsNull() || text.Kind() == jsonscan.String || whole && key == "ttl" {
				continue
			}
			dst = append(dst, intent.NewFault(name+"."+key, text.RawStr(), "not a string"))
		}
	}
	if c == nil {
		return dst
	}
	if c.Type != "" && c.Type != "ephemeral" && c.Type != "explicit" {
		want, key := "ephemeral", "type"
		if of == markNames[1] {
			want, key = "explicit", "mode"
		}
		dst = append(dst, intent.NewFault(cmp.Or(of, markNames[0])+"."+key, c.Type, "not "+want+"; treated as "+want))
	}
	if _, why := intent.ParseTTL(c.TTL); why != "" {
		dst = append(dst, intent.NewFault(cmp.Or(of, markNames[0])+".ttl", c.TTL, why))
	}
	return dst
}

// Trigger returns the cause of the request according to its last turn that is not system text: [intent.UserMessage] or
// [intent.ToolResult]. All others, such as an assistant turn to be continued, are [intent.OtherTrigger]. Trigger
// returns "" if there is no such turn.
func Trigger(r *block.Request) intent.Trigger {
	turns := r.Turns()
	for i := len(turns) - 1; i >= 0; i-- {
		switch t := &turns[i]; {
		case t.Role == block.RoleSystem || t.Role == block.RoleDeveloper:
		case t.Kind == block.TurnStart:
			return intent.UserMessage
		case t.Kind == block.ToolContinuation:
			return intent.ToolResult
		default:
			return intent.OtherTrigger
		}
	}
	return ""
}
