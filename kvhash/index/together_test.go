// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file combines all features in one history: shared stores and the workers that report them, engine blocks of
// several sizes, orphans with limit and time, an index that gets full, predictions, feeds, snapshots of the index and
// of workers, an index that follows. The model here is another one than model's, simpler: a name is one of our blocks,
// and a block is its sequence hash.

type togetherName struct {
	hash  uint64
	inner int // 0 for the last index block of the engine's block, which others follow
}

type togetherLocation struct {
	seq   uint64
	tiers [kvevent.NumTiers]bool
}

type togetherOrphan struct {
	names   []togetherName
	chain   []uint64
	chained bool
	tier    kvevent.Tier
	parent  uint64
	gone    []bool
	since   time.Time // zero: before there was a clock
}

type togetherWorker struct {
	key                              index.Key
	store                            kvevent.Tier
	members                          map[index.WorkerID]bool
	locations                        map[togetherName][]togetherLocation
	pred                             map[uint64]modelDeadline
	orphans                          []*togetherOrphan
	received, grouped                bool
	unknown, refused, full, hasState bool
	strange                          bool
	ahead                            bool // tokens after the blocks of an event
	small                            bool // each event so far stored one block of a given size, which may be the end of a prompt
	group                            int32
	ratio                            int
	trust                            index.State
	why                              string
}

type togetherModel struct {
	opt     index.AllOptions
	workers []*togetherWorker
	clock   time.Time
	serial  int
	cuts    int
}

func (w *togetherWorker) clear() {
	w.locations, w.pred, w.orphans = map[togetherName][]togetherLocation{}, map[uint64]modelDeadline{}, nil
	w.small, w.ahead = false, false
	w.grouped, w.ratio, w.unknown, w.refused, w.strange, w.full = false, 0, false, false, false, false
}

func (w *togetherWorker) clone() *togetherWorker {
	c := *w
	c.members, c.pred, c.locations = maps.Clone(w.members), maps.Clone(w.pred), map[togetherName][]togetherLocation{}
	for n, p := range w.locations {
		c.locations[n] = slices.Clone(p)
	}
	c.orphans = nil
	for _, o := range w.orphans {
		d := *o
		d.gone = slices.Clone(o.gone)
		c.orphans = append(c.orphans, &d)
	}
	return &c
}

// tiers returns which blocks the worker has, and in which tiers.
func (w *togetherWorker) tiers() map[uint64][kvevent.NumTiers]bool {
	m := map[uint64][kvevent.NumTiers]bool{}
	for _, list := range w.locations {
		for _, p := range list {
			t := m[p.seq]
			for i, on := range p.tiers {
				t[i] = t[i] || on
			}
			m[p.seq] = t
		}
	}
	return m
}

func (m *togetherModel) blocks() map[uint64]bool {
	all := map[uint64]bool{}
	for _, w := range m.workers {
		if w == nil {
			continue
		}
		for _, list := range w.locations {
			for _, p := range list {
				all[p.seq] = true
			}
		}
		for b := range w.pred {
			all[b] = true
		}
	}
	return all
}

// room makes room for a block.
func (m *togetherModel) room(all map[uint64]bool, seq uint64) bool {
	if all[seq] {
		return true
	}
	if m.opt.MaxBlocks > 0 && len(all) >= m.opt.MaxBlocks {
		return false
	}
	all[seq] = true
	return true
}

func (m *togetherModel) owner(w *togetherWorker, ev *kvevent.Event) *togetherWorker {
	if ev.Owner != "" && w.store == 0 {
		for _, s := range m.workers {
			if s != nil && s.store != 0 && s.key == (index.Key{Instance: ev.Owner}) {
				return s
			}
		}
	}
	return w
}

func (m *togetherModel) apply(source *togetherWorker, ev *kvevent.Event) (res index.Result) {
	n := len(ev.BlockHashes)
	source.received = true
	w := m.owner(source, ev)
	tier := ev.Tier
	if tier == 0 {
		tier = kvevent.Device
	}
	if w.store != 0 && tier <= kvevent.NumTiers {
		tier = w.store
	}
	switch ev.Kind {
	case kvevent.Cleared:
		switch {
		case ev.Attention != kvevent.FullAttention:
		case ev.Tier > kvevent.NumTiers:
			w.unknown = true
		case ev.Tier == 0 || w.store != 0:
			w.clear()
		default:
			w.orphans = slices.DeleteFunc(w.orphans, func(o *togetherOrphan) bool { return o.tier == tier })
			for name := range w.locations {
				w.drop(name, tier)
			}
			if tier == kvevent.Device {
				clear(w.pred)
			}
		}
		return res
	case kvevent.Stored:
		return m.store(w, source, ev, tier)
	case kvevent.Removed:
		by := source
		if !by.grouped {
			by = w
		}
		if ev.Attention != kvevent.FullAttention || !by.grouped || by.group != ev.Group {
			return index.Result{Ignored: n}
		}
		if tier > kvevent.NumTiers {
			w.unknown = true
			return index.Result{Ignored: n}
		}
		for _, name := range expandNames(ev.BlockHashes, max(by.ratio, 1)) {
			k := w.drop(name, tier)
			was := false
			w.orphans = slices.DeleteFunc(w.orphans, func(o *togetherOrphan) bool {
				for i := range o.names {
					if o.names[i] == name && o.tier == tier && !o.gone[i] {
						o.gone[i], was = true, true
					}
				}
				return !slices.Contains(o.gone, false)
			})
			if was {
				k++
			}
			if res.Removed += k; k == 0 {
				res.Ignored++
			}
		}
		return res
	}
	return index.Result{Ignored: n}
}

func (w *togetherWorker) drop(name togetherName, tier kvevent.Tier) (k int) {
	list := w.locations[name]
	for i := range list {
		if list[i].tiers[tier-1] {
			list[i].tiers[tier-1] = false
			k++
		}
	}
	w.locations[name] = slices.DeleteFunc(list, func(p togetherLocation) bool { return p.tiers == [kvevent.NumTiers]bool{} })
	if len(w.locations[name]) == 0 {
		delete(w.locations, name)
	}
	return k
}

func (w *togetherWorker) add(name togetherName, seq uint64, tier kvevent.Tier) bool {
	list := w.locations[name]
	i := slices.IndexFunc(list, func(p togetherLocation) bool { return p.seq == seq })
	if i < 0 {
		i = len(list)
		list = append(list, togetherLocation{seq: seq})
		w.locations[name] = list
	}
	if list[i].tiers[tier-1] {
		return false
	}
	list[i].tiers[tier-1] = true
	delete(w.pred, seq)
	return true
}

func (w *togetherWorker) at(name togetherName) (seq uint64, ok bool) {
	list := w.locations[name]
	if len(list) == 0 {
		return 0, false
	}
	return list[len(list)-1].seq, true
}

func expandNames(hashes []uint64, ratio int) (names []togetherName) {
	for _, h := range hashes {
		for i := range ratio - 1 {
			names = append(names, togetherName{h, i + 1})
		}
		names = append(names, togetherName{h, 0})
	}
	return names
}

func (m *togetherModel) store(w, source *togetherWorker, ev *kvevent.Event, tier kvevent.Tier) (res index.Result) {
	n := len(ev.BlockHashes)
	if ev.Attention != kvevent.FullAttention {
		source.strange = true
		return index.Result{Ignored: n}
	}
	if source.grouped && source.group != ev.Group {
		return index.Result{Ignored: n}
	}
	if tier > kvevent.NumTiers || ev.HasParent && slices.Contains(ev.BlockHashes, ev.Parent) {
		source.unknown = true
		return index.Result{Ignored: n}
	}
	ratio := max(source.ratio, 1)
	tokens, hashed := len(ev.TokenIDs), len(ev.LocalHashes)+len(ev.SequenceHashes)
	bad, given := false, m.opt.Scheme.HasLocal() // tokens determine the names of blocks
	if ev.BlockSize != 0 {
		ratio = int(ev.BlockSize) / modelBlock
		grows := source.small && ratio%source.ratio == 0 && ev.Tier == kvevent.Device && ev.Owner == "" && (tokens >= int(ev.BlockSize) || hashed > 0)
		bad = ev.BlockSize < 0 || int(ev.BlockSize)%modelBlock != 0 || source.ratio != 0 && ratio != source.ratio && !grows
	}
	if bad || ratio > 1 && !given || ratio > 1 && hashed > 0 && hashed != n*ratio ||
		n > 0 && tokens > 0 && hashed == 0 && (tokens <= (n-1)*ratio*modelBlock || tokens >= (n+1)*ratio*modelBlock) {
		size, whole := int(ev.BlockSize), source.ratio*modelBlock
		tail := n == 1 && size > 0 && size < whole && whole%size == 0 && tokens/size == 1 // the end of a prompt
		source.refused = source.refused || !tail
		return index.Result{Ignored: n}
	}
	if !source.grouped {
		source.grouped, source.group = true, ev.Group
	}
	if ev.BlockSize != 0 || tokens+hashed > 0 {
		if source.ratio != 0 && ratio != source.ratio {
			source.orphans, source.small = nil, false // what it has remains
		}
		source.small = (source.small || source.ratio == 0) && n == 1 && (source.ratio != 0 || ev.BlockSize != 0 && tokens >= int(ev.BlockSize))
		source.ahead = source.ahead || n > 0 && hashed == 0 && tokens > n*ratio*modelBlock
		source.ratio = ratio
	}
	if !w.grouped {
		w.grouped, w.group = true, source.group
	}
	w.ratio = max(w.ratio, source.ratio)
	w.received = true
	names := expandNames(ev.BlockHashes, ratio)
	if tokens+hashed == 0 || !given && len(ev.SequenceHashes) == 0 && tokens < modelBlock {
		var woken []*togetherOrphan
		var after []uint64
		for _, name := range names {
			seq, ok := w.at(name)
			if !ok {
				seq, ok = source.at(name)
			}
			switch {
			case !ok:
				w.unknown = true
				res.Ignored++
			case !w.add(name, seq, tier):
				res.Known++
			default:
				res.Stored++
				if name.inner > 0 {
					continue
				}
				for _, o := range w.wake(name.hash) {
					woken, after = append(woken, o), append(after, seq)
				}
			}
		}
		for i, o := range woken {
			m.insert(w, o, after[i], false, &res)
		}
		return res
	}
	o := &togetherOrphan{tier: tier, parent: ev.Parent, chained: len(ev.SequenceHashes) > 0 || !given, since: m.clock}
	switch {
	case len(ev.SequenceHashes) > 0:
		o.chain = ev.SequenceHashes
	case !given:
		o.chain = ev.BlockHashes[:min(n, tokens/modelBlock)]
	case len(ev.LocalHashes) > 0:
		o.chain = ev.LocalHashes
	default:
		o.chain = m.opt.Scheme.With(ev.LoRA, ev.Namespace).AppendLocal(nil, ev.TokenIDs, modelBlock, &kvhash.Extras{BlockObjects: ev.Objects})
	}
	whole := min(len(names), len(o.chain)/ratio*ratio)
	res.Ignored = len(names) - whole
	if res.Ignored > 0 && tokens == 0 {
		w.unknown = true
	}
	o.names, o.chain, o.gone = names[:whole], slices.Clone(o.chain[:whole]), make([]bool, whole)
	if whole == 0 {
		return res
	}
	if !ev.HasParent {
		m.insert(w, o, 0, true, &res)
		return res
	}
	seq, ok := w.at(togetherName{hash: ev.Parent})
	if !ok {
		seq, ok = source.at(togetherName{hash: ev.Parent})
	}
	if ok {
		m.insert(w, o, seq, false, &res)
		return res
	}
	w.orphans = slices.DeleteFunc(w.orphans, func(p *togetherOrphan) bool {
		return p.parent == o.parent && p.tier == o.tier && p.chained == o.chained && slices.Equal(p.names, o.names) && slices.Equal(p.chain, o.chain)
	})
	limit := m.opt.MaxPending
	if limit == 0 {
		limit = 1 << 16
	}
	if whole > limit {
		w.unknown = true
		res.Ignored += whole
		return res
	}
	for w.parked()+whole > limit {
		w.orphans = w.orphans[1:]
		w.unknown = true
	}
	w.orphans = append(w.orphans, o)
	res.Pending = whole
	return res
}

func (w *togetherWorker) parked() (n int) {
	for _, o := range w.orphans {
		n += len(o.names)
	}
	return n
}

func (w *togetherWorker) wake(parent uint64) (list []*togetherOrphan) {
	w.orphans = slices.DeleteFunc(w.orphans, func(o *togetherOrphan) bool {
		if o.parent == parent {
			list = append(list, o)
		}
		return o.parent == parent
	})
	return list
}

func (m *togetherModel) insert(w *togetherWorker, o *togetherOrphan, seq uint64, first bool, res *index.Result) {
	type job struct {
		o     *togetherOrphan
		seq   uint64
		first bool
	}
	all := m.blocks()
	for todo := []job{{o, seq, first}}; len(todo) > 0; todo = todo[1:] {
		j := todo[0]
		for i, name := range j.o.names {
			switch {
			case j.o.chained:
				j.seq = j.o.chain[i]
			case j.first && i == 0:
				j.seq = j.o.chain[i]
			default:
				j.seq = kvhash.Next(j.seq, j.o.chain[i])
			}
			if !j.o.gone[i] {
				if !m.room(all, j.seq) {
					w.full = true
					m.cuts++
					res.Ignored += len(j.o.names) - i
					break
				}
				if w.add(name, j.seq, j.o.tier) {
					res.Stored++
				} else {
					res.Known++
				}
			}
			if name.inner == 0 {
				for _, p := range w.wake(name.hash) {
					todo = append(todo, job{p, j.seq, false})
				}
			}
		}
	}
}

func (w *togetherWorker) state() (index.State, string) {
	return stated{w.hasState, w.trust, w.why, w.received, w.refused, w.strange, w.full, len(w.orphans) > 0, w.unknown, w.ahead}.trusted()
}

func (m *togetherModel) expire(now time.Time) {
	if now.After(m.clock) {
		m.clock = now
	}
	for _, w := range m.workers {
		if w == nil {
			continue
		}
		for b, d := range w.pred {
			if !d.until.After(now) {
				delete(w.pred, b)
			}
		}
		w.orphans = slices.DeleteFunc(w.orphans, func(o *togetherOrphan) bool {
			if o.since.IsZero() {
				o.since = now
			}
			late := m.opt.PendingTTL > 0 && !o.since.Add(m.opt.PendingTTL).After(now)
			w.unknown = w.unknown || late
			return late
		})
	}
}

// togetherPrediction is a prediction of index and model.
type togetherPrediction struct {
	p      index.Prediction
	w      *togetherWorker
	serial int
	fresh  []uint64
}

type togetherFeed struct {
	feed *index.Stream
	in   *sequence.Tracker
	seq  uint64
	rest bool
}

type togetherSaved struct {
	key      index.Key
	data     []byte
	w        *togetherWorker
	position []byte
}

type together struct {
	x, f          *index.Index // f follows x; nil if none does
	m             *togetherModel
	opt           index.AllOptions
	now           time.Time
	feeds         map[index.WorkerID]*togetherFeed
	predicted     []togetherPrediction
	saved         []togetherSaved
	words         []string
	key           uint32
	invalidChains bool
	log           []string
	plain         bool
	long          bool
}

var togetherSeed = []string{"abababababab", "ababbbabaabb", "aabbaabbaabb", "babababbabab", "bbbbbbbbbbbb", "ABABABABABAB", "010101010011"}

func newTogether(seed uint64) *together {
	r := rand.New(rand.NewPCG(seed, 99))
	o := index.AllOptions{MaxPending: []int{0, 4, 9, 30}[r.IntN(4)], PendingTTL: []time.Duration{-1, 2 * time.Second, 5 * time.Second}[r.IntN(3)],
		MaxBlocks: []int{0, 0, 8, 20, 40}[r.IntN(5)], Journal: []int{1 << 20, 1 << 20, 2000, 0}[r.IntN(4)]}
	if r.IntN(4) == 0 {
		o.Scheme, _ = kvhash.Lookup("sglang", nil)
	}
	h := &together{opt: o, now: time.Unix(1000, 0), feeds: map[index.WorkerID]*togetherFeed{}, words: togetherSeed, plain: r.IntN(3) == 0}
	if r.IntN(12) == 0 {
		h.words = nil
		for i := range 3 {
			h.words = append(h.words, letters(1, "ab", 600*i)+letters(2, "ab", 2600-600*i))
		}
		h.opt.MaxBlocks, h.opt.MaxPending = min(100*h.opt.MaxBlocks, 3000), 200*h.opt.MaxPending
		h.long = true
	}
	h.x, h.m = index.NewAll(modelBlock, &h.opt), &togetherModel{opt: h.opt}
	for range 1 + r.IntN(3) {
		h.join(r)
	}
	return h
}

// hashes returns what callers of Match name the blocks of a word.
func (h *together) hashes(word string) []uint64 {
	if h.opt.Scheme.HasLocal() {
		return modelHashes(word)
	}
	return h.opt.Scheme.With(modelLoRA(word), modelNamespace(word)).AppendBlocks(nil, modelTokens(word), modelBlock, nil)
}

func (h *together) add(id index.WorkerID, k index.Key, tier kvevent.Tier) {
	for int(id) >= len(h.m.workers) {
		h.m.workers = append(h.m.workers, nil)
	}
	if h.m.workers[id] != nil {
		panic("number in use")
	}
	w := &togetherWorker{key: k, store: tier, members: map[index.WorkerID]bool{}}
	w.clear()
	h.m.workers[id] = w
}

func (h *together) join(r *rand.Rand) {
	h.key++
	k := index.Key{Instance: []string{"e", "f"}[r.IntN(2)], DPRank: h.key}
	h.add(h.x.AddWorker(k), k, 0)
}

func (h *together) storeIn(r *rand.Rand) {
	k := index.Key{Instance: []string{"lmcache", "mooncake"}[r.IntN(2)]}
	if _, ok := h.x.Lookup(k); ok {
		return
	}
	tier := []kvevent.Tier{kvevent.Remote, kvevent.Host, kvevent.Device, kvevent.Disk}[r.IntN(4)]
	h.add(h.x.AddStore(k, tier), k, tier)
}

func (h *together) pick(r *rand.Rand) (index.WorkerID, *togetherWorker) {
	var ids []index.WorkerID
	for id, w := range h.m.workers {
		if w != nil {
			ids = append(ids, index.WorkerID(id))
		}
	}
	if len(ids) == 0 {
		h.join(r)
		return h.pick(r)
	}
	id := ids[r.IntN(len(ids))]
	return id, h.m.workers[id]
}

// event returns a random event of a worker.
func (h *together) event(r *rand.Rand, id index.WorkerID) (ev kvevent.Event) {
	w := h.m.workers[id]
	word := h.words[r.IntN(len(h.words))]
	ratio := 1 + int(h.m.workers[id].key.DPRank%3)
	if w.store != 0 || r.IntN(30) == 0 {
		ratio = 1 + r.IntN(2)
	}
	hashes := engineHashes(word, 1+uint64(r.IntN(8)/7))
	if r.IntN(6) == 0 {
		hashes = h.hashes(word)
	}
	names := !h.opt.Scheme.HasLocal()
	if names {
		hashes = h.hashes(word)
		if ratio = 1; r.IntN(30) == 0 {
			ratio = 2
		}
	}
	if !h.plain && (!names || h.invalidChains) {
		for range r.IntN(3) {
			hashes[r.IntN(len(hashes))] = 1 + r.Uint64N(3)
		}
		if r.IntN(8) == 0 { // the same hash twice
			i, j := r.IntN(len(hashes)), r.IntN(len(hashes))
			hashes[i] = hashes[j]
		}
	}
	tail := w.store == 0 && !names && (w.ratio == 0 || w.small) && r.IntN(3) == 0 // the end of a prompt as a smaller block
	if tail {
		ratio = 1
	}
	n := len(word) / ratio
	from := r.IntN(n)
	if h.long && from < 100 {
		from = 0
	}
	if r.IntN(3) == 0 {
		from = 0
	}
	to := from + 1 + r.IntN(n-from)
	if tail {
		to = from + 1
	}
	for i := from; i < to; i++ {
		ev.BlockHashes = append(ev.BlockHashes, hashes[(i+1)*ratio-1])
	}
	ev.Tier = []kvevent.Tier{0, 1, 1, 2, 3, 4}[r.IntN(6)]
	if tail {
		if ev.Kind, ev.BlockSize = kvevent.Stored, modelBlock; from > 0 {
			ev.HasParent, ev.Parent = true, hashes[from-1]
		}
		ev.TokenIDs, ev.LoRA, ev.Namespace = modelTokens(word[from:to]), modelLoRA(word[from:to]), modelNamespace(word[from:to])
		return ev
	}
	if r.IntN(3) == 0 {
		ev.Owner = []string{"lmcache", "mooncake"}[r.IntN(2)]
	}
	switch r.IntN(40) {
	case 0:
		ev.Attention = kvevent.SlidingWindow
	case 1:
		ev.Group = 1
	case 2:
		ev.Tier = 5
	}
	switch k := r.IntN(20); {
	case k < 11:
		ev.Kind = kvevent.Stored
		if from > 0 {
			ev.HasParent, ev.Parent = true, hashes[from*ratio-1]
		}
		rest := word[from*ratio : to*ratio]
		switch r.IntN(5) {
		case 0:
			ev.LocalHashes = modelLocal(rest)
		case 1:
			if h.plain && !h.invalidChains || !ev.HasParent || names {
				ev.SequenceHashes = h.hashes(word)[from*ratio : to*ratio]
			} else {
				ev.LocalHashes = modelLocal(rest)
			}
			if h.invalidChains && r.IntN(2) == 0 {
				for i := range ev.SequenceHashes {
					ev.SequenceHashes[i] = 1 + r.Uint64N(6)
				}
			}
		default:
			ev.TokenIDs, ev.LoRA, ev.Namespace = modelTokens(rest), modelLoRA(rest), modelNamespace(rest)
			switch r.IntN(30) {
			case 0, 1, 2:
				ev.TokenIDs = ev.TokenIDs[:len(ev.TokenIDs)-1]
			case 3:
				ev.TokenIDs = append(ev.TokenIDs, 1)
			}
		}
		if r.IntN(2) == 0 || ratio > 1 && (h.plain || names || r.IntN(6) > 0) { // without, the names would refer to other blocks
			ev.BlockSize = int32(ratio * modelBlock)
		}
	case k < 14: // a copy
		ev.Kind = kvevent.Stored
	case k < 19:
		ev.Kind = kvevent.Removed
		if r.IntN(2) == 0 {
			slices.Reverse(ev.BlockHashes)
		}
	default:
		ev.Kind, ev.BlockHashes = kvevent.Cleared, nil
		if r.IntN(5) == 0 {
			ev.Tier = 0
		}
	}
	return ev
}

// brief returns an event in short.
func brief(ev *kvevent.Event) string {
	s := fmt.Sprintf("%v tier %d size %d owner %q", ev.Kind, ev.Tier, ev.BlockSize, ev.Owner)
	if ev.HasParent {
		s += fmt.Sprintf(" after %x", ev.Parent)
	}
	s += fmt.Sprintf(", %d names, %d tokens, %d local, %d chained", len(ev.BlockHashes), len(ev.TokenIDs), len(ev.LocalHashes), len(ev.SequenceHashes))
	if n := len(ev.BlockHashes); n > 0 && n < 20 {
		s += fmt.Sprintf(" %x", ev.BlockHashes)
	} else if n > 0 {
		s += fmt.Sprintf(" %x to %x", ev.BlockHashes[0], ev.BlockHashes[n-1])
	}
	return s
}

func (h *together) logf(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case kvevent.Event:
			args[i] = brief(&a)
		case []kvevent.Event:
			args[i] = ""
			for j := range a {
				args[i] = fmt.Sprint(args[i], "\n    ", brief(&a[j]))
			}
		}
	}
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *together) op(r *rand.Rand) error {
	id, w := h.pick(r)
	switch k := r.IntN(100); {
	case k < 52:
		ev := h.event(r, id)
		h.logf("apply %d %v", id, ev)
		want := h.m.apply(w, &ev)
		if got := h.x.Add(id, &ev); got != want && !h.invalidChains {
			return fmt.Errorf("result %+v, model %+v", got, want)
		}
	case k < 55:
		if len(h.m.workers) < 9 {
			h.logf("join")
			h.join(r)
		}
	case k < 57:
		h.logf("store")
		h.storeIn(r)
	case k < 60:
		if r.IntN(3) == 0 {
			h.logf("leave %d", id)
			h.x.RemoveWorker(id)
			for _, s := range h.m.workers {
				if s != nil {
					delete(s.members, id)
				}
			}
			h.m.workers[id] = nil
			delete(h.feeds, id)
		}
	case k < 66:
		sid, s := h.pick(r)
		on := r.IntN(4) > 0
		h.logf("attach %d %d %v", id, sid, on)
		if on {
			h.x.Attach(id, sid)
		} else {
			h.x.Detach(id, sid)
		}
		if w.store == 0 && s.store != 0 {
			if delete(s.members, id); on {
				s.members[id] = true
			}
		}
	case k < 68:
		t := index.State(r.IntN(3))
		h.logf("trust %d %v", id, t)
		h.x.SetState(id, t, "told")
		w.hasState, w.trust, w.why = true, t, "told"
		if t == index.Exact {
			w.why = ""
			h.x.SetState(id, t, "")
		}
	case k < 76:
		word := h.words[r.IntN(len(h.words))]
		hashes := h.hashes(word[:1+r.IntN(len(word))])
		from, until := r.IntN(len(hashes)+1)*r.IntN(2), h.now.Add(time.Duration(1+r.IntN(6))*time.Second)
		h.logf("predict %d %s[%d:%d] %v", id, word, from, len(hashes), until.Sub(h.now))
		h.m.serial++
		p := togetherPrediction{p: h.x.Predict(id, hashes, from, until), w: w, serial: h.m.serial}
		if w.store == 0 {
			have, all := w.tiers(), h.m.blocks()
			for _, b := range hashes[from:] {
				if !h.m.room(all, b) {
					break
				}
				if _, ok := have[b]; ok {
					continue
				}
				if _, ok := w.pred[b]; !ok {
					p.fresh = append(p.fresh, b)
				}
				w.pred[b] = modelDeadline{until, p.serial}
			}
		}
		h.predicted = append(h.predicted, p)
	case k < 80:
		if len(h.predicted) > 0 {
			p := h.predicted[r.IntN(len(h.predicted))]
			h.logf("unpredict %+v", p.p)
			h.x.Unpredict(p.p)
			for _, b := range p.fresh {
				if d, ok := p.w.pred[b]; ok && d.serial == p.serial {
					delete(p.w.pred, b)
				}
			}
		}
	case k < 83:
		h.now = h.now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		h.logf("expire %v", h.now.Unix())
		for h.x.Expire(h.now) { // it does a bounded part at a time
		}
		h.m.expire(h.now)
		if h.f != nil {
			h.f.Expire(h.now) // leaves all alone
		}
	case k < 85:
		h.logf("clear %d", id)
		h.x.Clear(id)
		w.clear()
		w.received = true
	case k < 92:
		return h.feed(r, id, w)
	case k < 94: // the router is started again
		h.logf("load")
		data := h.x.AppendSnapshot(nil)
		y, err := index.LoadAll(data, &h.opt)
		if err != nil {
			return err
		}
		if again := y.AppendSnapshot(nil); !bytes.Equal(data, again) && !h.invalidChains && y.Version() == h.x.Version() {
			return fmt.Errorf("snapshot of the loaded index differs")
		}
		if r.IntN(2) == 0 {
			return nil
		}
		if h.opt.Journal == 0 {
			h.f = nil
		}
		h.goOn(r, y)
	case k < 98:
		return h.follow(r)
	default:
		h.logf("save %d", id)
		if f := h.feeds[id]; f != nil {
			c := w.clone()
			c.pred = map[uint64]modelDeadline{}
			h.saved = append(h.saved, togetherSaved{w.key, h.x.AppendWorker(nil, id), c, f.in.AppendPosition(nil)})
		}
	}
	return nil
}

// goOn continues with another index of the same state.
func (h *together) goOn(r *rand.Rand, x *index.Index) {
	h.logf("go on with it")
	h.x, h.predicted = x, nil
	h.join(r) // so it leads, and drops orphans
	o := &sequence.Options{MaxHeld: 3, Window: 8}
	for id, w := range h.m.workers {
		if w == nil {
			continue
		}
		w.pred = map[uint64]modelDeadline{}
		if f := h.feeds[index.WorkerID(id)]; f != nil {
			position := f.in.AppendPosition(nil)
			f.feed, f.in = x.NewStreamOf(index.WorkerID(id), o), sequence.New(o)
			f.in.Restore(nil, position)
			t, _ := f.in.State()
			f.rest = w.received && t == sequence.Unknown
		}
	}
}

func (h *together) feed(r *rand.Rand, id index.WorkerID, w *togetherWorker) error {
	f := h.feeds[id]
	o := &sequence.Options{MaxHeld: 3, Window: 8}
	if f == nil {
		h.logf("feed %d", id)
		f = &togetherFeed{feed: h.x.NewStreamOf(id, o), in: sequence.New(o), rest: w.received}
		h.feeds[id] = f
	}
	var ready []kvevent.Batch
	switch k := r.IntN(12); {
	case k < 5:
		b := kvevent.Batch{Seq: f.seq}
		for range r.IntN(3) {
			b.Events = append(b.Events, h.event(r, id))
		}
		f.seq++
		if r.IntN(6) == 0 {
			h.logf("lost batch")
			return nil
		}
		h.logf("push %d %d %v", id, b.Seq, b.Events)
		f.feed.Add(b.Clone())
		ready = f.in.Append(nil, b)
	case k < 6:
		h.logf("give up %d", id)
		f.feed.Skip()
		ready = f.in.Skip(nil)
	case k < 7:
		h.logf("reset %d", id)
		f.feed.Reset("")
		ready = f.in.Reset(nil, "")
		f.seq = 0
	case k < 8:
		h.logf("replay done %d", id)
		f.feed.FinishReplay()
		f.in.FinishReplay()
	case k < 9:
		h.logf("another feed %d", id)
		old := f.feed
		position := f.in.AppendPosition(nil)
		f.feed, f.in = h.x.NewStreamOf(id, o), sequence.New(o)
		f.in.Restore(nil, position)
		t, _ := f.in.State()
		f.rest = w.received && t == sequence.Unknown
		old.Add(kvevent.Batch{Seq: f.seq, Events: []kvevent.Event{h.event(r, id)}})
		return nil
	case k < 10 && len(h.saved) > 0:
		s := h.saved[r.IntN(len(h.saved))]
		if h.opt.MaxBlocks > 0 {
			rest := w.clone()
			w.clear()
			n := h.m.blocks()
			for b := range s.w.tiers() {
				n[b] = true
			}
			*w = *rest
			if len(n) > h.opt.MaxBlocks {
				return nil // the blocks for which there is room are not specified
			}
		}
		h.logf("restore %d from %v", id, s.key)
		err := f.feed.Restore(s.data)
		if s.w.store != w.store && errors.Is(err, index.ErrStore) {
			return nil
		}
		if err != nil {
			return err
		}
		c := s.w.clone()
		c.key, c.store, c.members = w.key, w.store, w.members
		*w = *c
		for _, o := range w.orphans {
			o.since = h.m.clock
		}
		ready, _ = f.in.Restore(nil, s.position)
		f.rest = false
	default:
		var events []kvevent.Event
		for range r.IntN(4) {
			events = append(events, h.event(r, id))
		}
		seq := from(f.feed) + uint64(r.IntN(3))
		f.seq = max(f.seq, seq+1)
		h.logf("snapshot %d %d %v", id, seq, events)
		f.feed.Replace(seq, events)
		w.clear()
		f.rest = false
		for i := range events {
			h.m.apply(w, &events[i])
		}
		ready = f.in.Replace(nil, seq, events...)
	}
	for i := range ready {
		if f.rest && ready[i].Seq == 0 {
			ev := kvevent.Event{Kind: kvevent.Cleared}
			h.m.apply(w, &ev)
		}
		f.rest = false
		for j := range ready[i].Events {
			h.m.apply(w, &ready[i].Events[j])
		}
	}
	w.hasState = true
	state, why := f.in.State()
	w.trust, w.why = index.State(state), why
	n, seq := f.feed.Need()
	if m, want := f.in.Need(); n != index.Need(m) || seq != want {
		return fmt.Errorf("need %d from %d, model %d from %d", n, seq, m, want)
	}
	return nil
}

// follow lets the follower catch up, or begin.
func (h *together) follow(r *rand.Rand) error {
	if h.opt.Journal == 0 {
		return nil
	}
	if h.f != nil {
		delta, now, ok := h.x.AppendDelta(nil, h.f.Version())
		h.logf("delta from %d: %v", h.f.Version().Count, ok)
		if ok {
			if err := h.f.AddDelta(delta); err != nil {
				return fmt.Errorf("delta: %w", err)
			}
			if h.f.Version() != now {
				return fmt.Errorf("follower did not follow")
			}
		} else {
			h.f = nil
		}
	}
	if h.f == nil {
		o := h.opt
		o.Journal = []int{0, 1 << 20}[r.IntN(2)]
		if h.x.Version() == (index.Version{}) {
			h.logf("follow from nothing")
			h.f = index.NewAll(modelBlock, &o)
			if d, _, ok := h.x.AppendDelta(nil, index.Version{}); ok {
				if err := h.f.AddDelta(d); err != nil {
					return err
				}
			}
			return nil
		}
		h.logf("follow")
		f, err := index.LoadAll(h.x.AppendSnapshot(nil), &o)
		if err != nil {
			return err
		}
		h.f = f
	}
	if err := h.f.Check(); err != nil && !h.invalidChains {
		return fmt.Errorf("follower: %w", err)
	}
	if h.invalidChains {
		if h.f.CheckInvalidChains() != nil {
			return h.f.CheckInvalidChains()
		}
		return nil
	}
	err := h.compare(r, h.f, false)
	if _, _, ok := h.f.AppendDelta(nil, h.f.Version()); ok && h.opt.PendingTTL < 0 && r.IntN(6) == 0 { // for its orphans, time began later
		x := h.f
		h.f = nil
		h.goOn(r, x)
	}
	return err
}

// compare compares all results. Only the leader has predictions.
func (h *together) compare(r *rand.Rand, x *index.Index, predictions bool) error {
	m := h.m
	var states []index.Info
	has := make([]map[uint64][kvevent.NumTiers]bool, len(m.workers))
	own := make([]map[uint64]bool, len(m.workers)) // resident or predicted
	known := map[uint64]bool{}
	for id, w := range m.workers {
		if w == nil {
			continue
		}
		has[id] = w.tiers()
		own[id] = map[uint64]bool{}
		for b := range has[id] {
			own[id][b], known[b] = true, true
		}
		if predictions {
			for b := range w.pred {
				own[id][b], known[b] = true, true
			}
		}
		s := index.Info{Worker: index.WorkerID(id), Key: w.key, Blocks: len(own[id]), Store: w.store}
		for _, o := range w.orphans {
			for _, gone := range o.gone {
				if !gone {
					s.Orphans++
				}
			}
		}
		s.State, s.Why = w.state()
		states = append(states, s)
		if got, ok := x.Info(index.WorkerID(id)); !ok || got != s {
			return fmt.Errorf("state %+v, model %+v", got, s)
		}
	}
	if got := x.AppendInfos(nil); !slices.Equal(got, states) {
		return fmt.Errorf("states %+v, model %+v", got, states)
	}
	if x.Len() != len(known) {
		return fmt.Errorf("%d blocks, model %d", x.Len(), len(known))
	}
	holds := func(id int, b uint64) (t [kvevent.NumTiers]bool) {
		t = has[id][b]
		for sid, s := range m.workers {
			if s != nil && s.store != 0 && s.members[index.WorkerID(id)] {
				if _, ok := has[sid][b]; ok {
					t[s.store-1] = true
				}
			}
		}
		return t
	}
	for range 3 {
		word := h.words[r.IntN(len(h.words))]
		word = word[:1+r.IntN(len(word))]
		if r.IntN(4) == 0 {
			word += "b"
		}
		hashes := h.hashes(word)
		var want []index.Match
		for id, w := range m.workers {
			if w == nil || w.store != 0 {
				continue
			}
			a := index.Match{Worker: index.WorkerID(id)}
			a.State, _ = w.state()
			for _, b := range hashes {
				t := slices.Index(slices.Clone(func() []bool { t := holds(id, b); return t[:] }()), true)
				if t < 0 && !(predictions && own[id][b]) {
					break
				}
				a.Depth++
				if t >= 0 {
					a.Tiers[t]++
				} else {
					a.Predicted++
				}
			}
			if a.Depth > 0 {
				want = append(want, a)
			}
		}
		if got := x.AppendMatches(nil, hashes); !slices.Equal(got, want) {
			return fmt.Errorf("match %s: %+v, model %+v", word, got, want)
		}
		most := r.IntN(4)
		if got := x.AppendBest(nil, hashes, most); !slices.Equal(got, deepest(want, most)) {
			return fmt.Errorf("best %d of %s: %+v, model %+v", most, word, got, deepest(want, most))
		}
		q := &index.Query{Stop: r.IntN(3)}
		some := want
		if r.IntN(2) == 0 {
			q.Workers, some = []index.WorkerID{}, nil
			for id := range index.WorkerID(len(m.workers) + 1) {
				if r.IntN(2) == 0 {
					q.Workers = append(q.Workers, id)
				}
			}
			for _, a := range want {
				if slices.Contains(q.Workers, a.Worker) {
					some = append(some, a)
				}
			}
		}
		if got := x.Search(nil, hashes, q); q.Stop == 0 && !slices.Equal(got, some) {
			return fmt.Errorf("search %s %+v: %+v, model %+v", word, q, got, some)
		} else if err := sameBounds(some, got, q.Stop); err != nil {
			return fmt.Errorf("search %s %+v: %w: %+v, model %+v", word, q, err, got, some)
		}
		e := x.Explain(hashes)
		n := 0
		for n < len(hashes) && known[hashes[n]] {
			n++
		}
		if e.Known != n || e.Blocks != len(hashes) || (e.End == index.EndOfPrompt) != (n == len(hashes)) {
			return fmt.Errorf("explain %s: %d known, model %d: %v", word, e.Known, n, e.End)
		}
		at := 0
		for _, l := range e.Way {
			if l.From != at || l.To <= l.From {
				return fmt.Errorf("explain %s: %v", word, e)
			}
			for ; at < l.To; at++ {
				var tiers [kvevent.NumTiers][]index.WorkerID
				var predicted []index.WorkerID
				for id, w := range m.workers {
					if w == nil || w.store != 0 {
						continue
					}
					for t, on := range holds(id, hashes[at]) {
						if on {
							tiers[t] = append(tiers[t], index.WorkerID(id))
						}
					}
					if _, ok := w.pred[hashes[at]]; ok && predictions {
						predicted = append(predicted, index.WorkerID(id))
					}
				}
				for t := range tiers {
					if !slices.Equal(tiers[t], l.Tiers[t]) {
						return fmt.Errorf("explain %s, block %d: %v", word, at, e)
					}
				}
				if !slices.Equal(predicted, l.Predicted) {
					return fmt.Errorf("explain %s, block %d: %v, model predicted %v", word, at, e, predicted)
				}
			}
		}
	}
	return nil
}

func (h *together) check(r *rand.Rand) error {
	if h.invalidChains {
		return h.x.CheckInvalidChains()
	}
	if err := h.x.Check(); err != nil {
		return err
	}
	return h.compare(r, h.x, true)
}

func (h *together) end() error {
	for id, w := range h.m.workers {
		if w != nil {
			h.x.RemoveWorker(index.WorkerID(id))
		}
	}
	if err := h.x.Check(); err != nil {
		return err
	}
	if s := h.x.Measure(); s.Blocks+s.Runs+s.Sets+s.Orphans+s.Predictions+s.Residencies+s.Workers != 0 {
		return fmt.Errorf("left: %+v", s)
	}
	return nil
}

func runTogether(seed uint64, ops []uint64, invalidChains bool) (h *together, err error) {
	h = newTogether(seed)
	h.invalidChains = invalidChains
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			if testing.Verbose() && len(ops) < 12 {
				panic(p)
			}
		}
	}()
	for _, s := range ops {
		r := rand.New(rand.NewPCG(s, seed))
		if err := h.op(r); err != nil {
			return h, err
		}
		if err := h.check(r); err != nil {
			return h, err
		}
	}
	return h, h.end()
}

// shrinkTogether leaves out what is not needed to fail.
func shrinkTogether(seed uint64, ops []uint64, invalidChains bool) []uint64 {
	for size := len(ops) / 2; size > 0; {
		some := false
		for i := 0; i+size <= len(ops); {
			less := slices.Delete(slices.Clone(ops), i, i+size)
			if _, err := runTogether(seed, less, invalidChains); err != nil {
				ops, some = less, true
			} else {
				i += size
			}
		}
		if !some {
			size /= 2
		}
	}
	return ops
}

func TestTogether(t *testing.T) {
	for _, invalidChains := range []bool{false, true} {
		for seed := range uint64(sample(15, 60, 240)) {
			r := rand.New(rand.NewPCG(seed, 5))
			ops := make([]uint64, 70)
			for i := range ops {
				ops[i] = r.Uint64()
			}
			if _, err := runTogether(seed, ops, invalidChains); err != nil {
				t.Logf("seed %d: %v", seed, err)
				ops = shrinkTogether(seed, ops, invalidChains)
				h, err := runTogether(seed, ops, invalidChains)
				t.Fatalf("%+v\n%s\n%v", h.opt, strings.Join(h.log, "\n"), err)
			}
		}
	}
}
