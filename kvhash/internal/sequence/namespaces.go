// SPDX-License-Identifier: Apache-2.0

package sequence

import "github.com/weft-go/weft/kvhash/kvevent"

// namespaces holds the namespaces of the blocks of a rank, for engines that send them only with the first block of a
// prompt. Blocks of no namespace take no memory, so neither does an engine whose requests have no salts.
type namespaces struct {
	of   map[uint64]inNamespace // by engine hash
	full bool                   // some blocks were not noted
}

// inNamespace is the entry of a block. Tiers has a bit for each tier that holds it. In a model with several caches a
// block has one hash in all of them, and the caches that forget the beginning of a prompt drop it early: only one group
// counts, one of full attention if there is one.
type inNamespace struct {
	name  string
	group int32
	full  bool // the group is one of full attention
	tiers uint8
}

// maxNamespace limits the length of a namespace that is stored, in bytes.
const maxNamespace = 1024

// see takes the next event of the rank and sets its namespace if the engine left it to the block before. max bounds the blocks that
// are remembered.
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
					n.gone(h, tierBit(e.Tier))
				}
			}
		}
	case kvevent.Cleared:
		switch {
		case clearsAll(e):
			*n = namespaces{}
		case clearsTier(e):
			for h := range n.of {
				n.gone(h, tierBit(e.Tier))
			}
		}
	}
}

// note remembers the namespace of the event's blocks.
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

// moved notes that blocks are in a further tier.
func (n *namespaces) moved(e *kvevent.Event) {
	for _, h := range e.BlockHashes {
		if b, ok := n.of[h]; ok && b.group == e.Group {
			b.tiers |= tierBit(e.Tier)
			n.of[h] = b
		}
	}
}

// gone notes that a block is no longer in a tier.
func (n *namespaces) gone(h uint64, tier uint8) {
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
