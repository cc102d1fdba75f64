// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"maps"
	"sort"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// past is the earlier request of a [Reader], and the turn and the tool in it that are expected next.
type past struct {
	*Past
	turn, tool int
	members    int // leading turns that are fields of the request, whose positions are not in order
	memory     int // bytes for unescaped strings that were taken over

	origin *seam.Origin // of the turn that was taken last, until it is added

	same bool // the turn that was taken last has the same blocks

	copy jsonscan.Copy // of the turn or tool that is taken; here, it needs no memory of its own
}

// from sets the earlier request. Strings with escapes are shared with it. Its memory for them is not: if it is more than
// twice the new body, the strings are read again, so that a request never refers to much more memory than its body's
// size. Then it returns false.
func (r *Reader) from(earlier *Past, doc *jsonscan.Doc) bool {
	if earlier.Memory > 2*doc.Size()+64<<10 {
		return false
	}
	r.past = past{Past: earlier, memory: earlier.Memory}
	for r.past.members < len(earlier.Turns) && earlier.Turns[r.past.members].Form&FormMember != 0 {
		r.past.members++
	}
	r.arena.Reserve(earlier.Copies.Fresh())
	return true
}

// TakeTurn returns the turn that was read from the item first of an earlier request if it has not changed, and its last
// item.
func (r *Reader) TakeTurn(first jsonscan.Value) (t block.Turn, last jsonscan.Value, ok bool) {
	p := &r.past
	p.same = false
	if p.Past == nil {
		return t, last, false
	}
	if p.copy, ok = p.Copies.Lookup(first); !ok {
		return t, last, false
	}
	c := &p.copy
	i := p.find(c.Was)
	if i < 0 {
		return t, last, false
	}
	old := &p.Turns[i]
	if last, ok = c.Through(LastOf(old.At)); !ok {
		return t, last, false
	}
	n := int(p.Blocks[i])
	if i > 0 {
		n -= int(p.Blocks[i-1])
	}
	if r.blocks+n > r.lim.Blocks { // reading it finds out where
		return t, last, false
	}
	r.blocks += n
	p.turn, p.origin = i+1, p.Origins[i]
	t, p.same = access.MoveTurn(old, first.Doc(), c, p.Edited)
	return t, last, true
}

// find returns the number of the turn at a position, or -1.
func (p *past) find(at jsonscan.Value) int {
	for _, i := range [...]int{p.turn, 0} {
		if i < len(p.Turns) && ValueOf(p.Turns[i].At) == at {
			return i
		}
	}
	list := p.Turns[p.members:]
	i := sort.Search(len(list), func(i int) bool { return ValueOf(list[i].At).Index() >= at.Index() })
	if i < len(list) && ValueOf(list[i].At) == at {
		return p.members + i
	}
	return -1
}

// TakeTool returns the tool that was read from v in an earlier request if it has not changed.
func (r *Reader) TakeTool(v jsonscan.Value) (t block.Tool, ok bool) {
	p := &r.past
	if p.Past == nil {
		return t, false
	}
	if p.copy, ok = p.Copies.Lookup(v); !ok {
		return t, false
	}
	c := &p.copy
	i := p.tool
	if i >= len(p.Tools) || ValueOf(p.Tools[i].At) != c.Was {
		i = sort.Search(len(p.Tools), func(i int) bool { return ValueOf(p.Tools[i].At).Index() >= c.Was.Index() })
		if i == len(p.Tools) || ValueOf(p.Tools[i].At) != c.Was {
			return t, false
		}
	}
	p.tool = i + 1
	return access.MoveTool(&p.Tools[i], v.Doc(), c), true
}

// SetCustom specifies the names of tools with free text, without which turns are not read the same. TakeTurn returns
// nothing if they were others in the earlier request.
func (r *Reader) SetCustom(names map[string]bool) {
	if r.past.Past != nil && !maps.Equal(names, CustomSet(r.past.Tools)) {
		earlier := *r.past.Past
		earlier.Turns = nil
		r.past.Past, r.past.members = &earlier, 0
	}
}

// CustomSet returns the names of the tools with free text, or nil if there are none.
func CustomSet(tools []block.Tool) (names map[string]bool) {
	for i := range tools {
		if t := &tools[i]; t.Kind == block.CustomTool {
			if names == nil {
				names = make(map[string]bool)
			}
			names[t.Name] = true
		}
	}
	return names
}

// RoomForTurns makes room for n turns.
func (r *Reader) RoomForTurns(v *View, n int) {
	v.Turns, v.Blocks, v.Origins = make([]block.Turn, 0, n), make([]int32, 0, n), make([]*seam.Origin, 0, n)
}

// AddTurn appends a turn.
func (r *Reader) AddTurn(v *View, t block.Turn) {
	if n := len(v.Turns); v.Shared == n && r.past.origin != nil && r.past.turn == n+1 {
		v.Shared++
	}
	if r.past.origin != nil && !r.past.same {
		v.Moved = append(v.Moved, int32(len(v.Turns)))
	}
	v.Turns = append(v.Turns, t)
	v.Blocks = append(v.Blocks, int32(r.blocks))
	v.Origins = append(v.Origins, r.origin())
}

// origin returns the origin of the turn that was taken or, if none was, a new one.
func (r *Reader) origin() *seam.Origin {
	if o := r.past.origin; o != nil {
		r.past.origin = nil
		return o
	}
	if len(r.origins) == 0 {
		r.origins = make([]seam.Origin, min(1+r.turns/2, 16)) // a later request may keep one, and the others with it
	}
	o := &r.origins[0]
	r.origins = r.origins[1:]
	r.turns++
	return o
}

// EndTurn records that the last turn was extended.
func (r *Reader) EndTurn(v *View) {
	n := len(v.Turns) - 1
	v.Blocks[n], v.Shared = int32(r.blocks), min(v.Shared, n)
	if k := len(v.Moved); k == 0 || int(v.Moved[k-1]) != n {
		v.Moved = append(v.Moved, int32(n))
	}
	r.past.origin = nil
	v.Origins[n] = r.origin()
}

// End completes the view and returns the first error.
func (r *Reader) End(v *View) error {
	v.Memory = r.past.memory + r.arena.Size()
	return r.Err()
}
