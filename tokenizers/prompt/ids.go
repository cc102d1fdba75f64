// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
)

// callIDs assigns the calls of one response ids that no other call of the conversation has. Clients match results to
// calls by id in the whole conversation: Claude Code drops the first result of a repeated id and then repeats the
// request endlessly.
//
// A model that writes ids sometimes restarts at 0, so its ids are used only if they are new.
type callIDs struct {
	req    *block.Request
	past   map[string]bool // ids in the request; nil until the first call
	given  []string        // ids assigned in this response
	number string          // text before the number in the model's ids; "" if they have no number
	short  bool            // the template accepts only short ids
}

// pastIDs returns the ids of all calls and results that a request holds.
func pastIDs(r *block.Request) map[string]bool {
	ids := make(map[string]bool)
	for _, t := range r.Turns() {
		for i := range t.Blocks {
			if id := t.Blocks[i].CallID; id != "" {
				ids[id] = true
			}
		}
	}
	return ids
}

// numberIn returns the text that a family writes before the number of an id.
func numberIn(g *grammar.Grammar) string {
	if g != nil && g.Tagged != nil && g.Tagged.Name != nil {
		return g.Tagged.Name.Number
	}
	return ""
}

// next returns the id of the next call: the model's id if it is new, otherwise an id of the same form with another
// number, otherwise minted, with a suffix if a client used it before.
func (c *callIDs) next(own, minted string) string {
	if c.past == nil {
		c.past = pastIDs(c.req)
	}
	if c.short && !isShort(own) {
		own = ""
	}
	id := own
	if base, ok := c.numbered(own); ok {
		for n := len(c.past) + len(c.given); !c.free(id); n++ {
			id = base + strconv.Itoa(n)
		}
	}
	for n := 0; !c.free(id); n++ {
		switch id = minted; {
		case c.short:
			id = shortID(minted, n)
		case n > 0:
			id = fmt.Sprint(minted, "_", n)
		}
	}
	c.given = append(c.given, id)
	return id
}

func (c *callIDs) free(id string) bool {
	return id != "" && !c.past[id] && !slices.Contains(c.given, id)
}

// numbered returns id without the number at its end and reports whether it has one.
func (c *callIDs) numbered(id string) (base string, ok bool) {
	i := strings.LastIndex(id, c.number)
	if c.number == "" || i < 0 {
		return "", false
	}
	base = id[:i+len(c.number)]
	_, err := strconv.ParseUint(id[len(base):], 10, 32)
	return base, err == nil
}
