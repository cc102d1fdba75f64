// SPDX-License-Identifier: Apache-2.0

package sequence

import "github.com/weft-go/weft/kvhash/kvevent"

// namespaces holds the namespaces of the blocks of a rank, for engines that send them only with the first block of a
// prompt. Blocks without a namespace take no memory.
type namespaces struct {
	of   map[uint64]inNamespace // by engine hash
	full bool                   // some blocks were not stored
}

// inNamespace is the entry of a block, with a bit for each tier that holds it. In a model with several caches, a block
// has the same hash in all of them, and some drop the first blocks of a prompt early. So only one group is tracked, one
// with full attention if it exists.
type inNamespace struct {
	name  string
	group int32
	full  bool // the group is one of full attention
	tiers uint8
}

// maxNamespace limits the length of a namespace that is stored, in bytes.
const maxNamespace = 1024

// see processes the next event of the rank and sets its namespace if it is that of the previous block. max limits the
// number of stored blocks.
func (n *namespaces) see(e *kvevent.Event, max int) {
	switch e.Kind {
	case kvevent.Stored:
		if e.RootNamespace {
			if p, ok := n.of[e.Parent]; ok && e.HasParent {
				e.Namespace = p.name
			}
			e.RootNamespace = false
			n.note(e, max)
		} else if len(n.of) > 0 {
			n.moved(e)
		}
	case kvevent.Removed:
		if len(n.of) > 0 {
			for _, h := range e.BlockHashes {
				if n.of[h].group == e.Group {
					n.dropCopy(h, tierBit(e.Tier))
				}
			}
		}
	case kvevent.Cleared:
		switch {
		case clearsAll(e):
			*n = namespaces{}
		case clearsTier(e):
			for h := range n.of {
				n.dropCopy(h, tierBit(e.Tier))
			}
		}
	}
}

// note stores the namespace of the event's blocks.
func (n *namespaces) note(e *kvevent.Event, max int) {
	if e.Namespace == "" {
		return
	}
	if n.of == nil {
		n.of = make(map[uint64]inNamespace)
	}
	for _, h := range e.BlockHashes {
		b, ok := n.of[h]
		if !ok && len(n.of) >= max || len(e.Namespace) > maxNamespace {
			n.full = true
			return
		}
		full := e.Attention == kvevent.FullAttention
		switch {
		case !ok || full && !b.full:
			b = inNamespace{name: e.Namespace, group: e.Group, full: full}
		case b.group != e.Group:
			continue
		}
		b.name, b.tiers = e.Namespace, b.tiers|tierBit(e.Tier)
		n.of[h] = b
	}
}

// moved records that blocks are in another tier.
func (n *namespaces) moved(e *kvevent.Event) {
	for _, h := range e.BlockHashes {
		if b, ok := n.of[h]; ok && b.group == e.Group {
			b.tiers |= tierBit(e.Tier)
			n.of[h] = b
		}
	}
}

// dropCopy records that a block is no longer in a tier.
func (n *namespaces) dropCopy(h uint64, tier uint8) {
	b, ok := n.of[h]
	if !ok {
		return
	}
	if b.tiers &^= tier; b.tiers == 0 {
		delete(n.of, h)
	} else {
		n.of[h] = b
	}
}

// tierBit returns a bit for the tier of a Stored or Removed.
func tierBit(t kvevent.Tier) uint8 {
	if t == kvevent.AnyTier || t > kvevent.NumTiers {
		t = kvevent.Device
	}
	return 1 << t
}
