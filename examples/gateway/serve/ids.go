// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
)

// callIDs gives the calls of one answer ids that no other call of the conversation has. Clients join results to calls by id,
// and not turn by turn: Claude Code drops the first result of an id that comes twice, and then asks again without end.
//
// A model that writes ids itself counts them from 0 now and then, so its word is taken only if it is new.
type callIDs struct {
	past   map[string]bool // ids that the request holds; not changed
	given  []string        // of this answer
	number string          // what stands before the number in the model's own ids; "" if they have none
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

// numberIn returns what a family writes before the number of an id.
func numberIn(g *grammar.Grammar) string {
	if g.Tagged != nil && g.Tagged.Name != nil {
		return g.Tagged.Name.Number
	}
	return ""
}

// next returns the id of the next call: the model's own, else one of the model's form with another number, else minted, which
// is new as long as nobody forges it.
func (c *callIDs) next(own, minted string) string {
	id := own
	if base, ok := c.numbered(own); ok {
		for n := len(c.past) + len(c.given); !c.free(id); n++ {
			id = base + strconv.Itoa(n)
		}
	}
	for n := 0; !c.free(id); n++ {
		if id = minted; n > 0 {
			id = fmt.Sprint(minted, "_", n)
		}
	}
	c.given = append(c.given, id)
	return id
}

func (c *callIDs) free(id string) bool {
	return id != "" && !c.past[id] && !slices.Contains(c.given, id)
}

// numbered returns id without the number at its end.
func (c *callIDs) numbered(id string) (base string, ok bool) {
	i := strings.LastIndex(id, c.number)
	if c.number == "" || i < 0 {
		return "", false
	}
	base = id[:i+len(c.number)]
	_, err := strconv.ParseUint(id[len(base):], 10, 32)
	return base, err == nil
}
