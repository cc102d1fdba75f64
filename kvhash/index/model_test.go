// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file is structured as follows: the model, which names a block by its sequence hash, keeps plain maps and lists for each worker
// and knows nothing of trees; then prompts written as letters; then random histories that compare it with the index after every step.
// The race, leak and fuzz tests use the same model.

// exhaustive reports whether to run tests in full: WEFT_TEST=long is set.
func exhaustive() bool { return os.Getenv("WEFT_TEST") == "long" }

// sample returns short with -short, long with WEFT_TEST=long, and plain otherwise.
func sample(short, plain, long int) int {
	switch {
	case testing.Short():
		return short
	case exhaustive():
		return long
	}
	return plain
}

// factor is by how much long runs multiply the loops.
func factor() int {
	if exhaustive() {
		return 4
	}
	return 1
}

type model struct {
	block   int
	opt     index.AllOptions
	ids     map[uint64]int32 // by sequence hash
	seqs    []uint64         // the other way
	workers []*modelWorker   // by WorkerID; nil if absent
}

type modelWorker struct {
	key       index.Key
	locations map[uint64][]modelLocation // by engine hash, in the order in which they came to hold something
	held      [][kvevent.NumTiers]int    // by block: how many engine hashes hold it in each tier
	pred      map[int32]modelDeadline
	serial    int
	orphans   []modelOrphan // oldest first

	group         int32
	each          int // number of index blocks in an engine's block; 0 means not known yet
	grouped       bool
	ahead         bool // tokens after the blocks of an event
	small         bool // each event so far stored one block of a given size, which may be the end of a prompt
	lost, refused bool
	strange       bool                      // blocks of a group that is not understood
	groups        map[int32]map[uint64]bool // besides the one that counts: which engine hashes each holds
	groupEach     int
	need          int32 // blocks that each must hold before the end of a prefix
	received      bool
	hasState      bool
	trust         index.State
	why           string
	store         kvevent.Tier   // of a shared store; 0 for a worker
	stores        []*modelWorker // attached
}

// modelDeadline is the time until which a block is expected, and its prediction.
type modelDeadline struct {
	until  time.Time
	serial int
}

// modelPrediction holds the blocks of a prediction, for withdrawing it.
type modelPrediction struct {
	worker *modelWorker
	serial int
	fresh  []int32 // blocks without an earlier prediction
}

// modelLocation is the block that an engine hash names, or several blocks if the engine's blocks are larger.
type modelLocation struct {
	blocks []int32
	tiers  [kvevent.NumTiers]bool
}

type modelOrphan struct {
	modelRun
	parent uint64
	gone   []bool
}

type modelRun struct {
	hashes []uint64
	locals []uint64 // each times as many as hashes; or
	seqs   []uint64 // chained already
	each   int
	tier   kvevent.Tier
}

func newModel(block int, o index.AllOptions) *model {
	return &model{block: block, opt: o, ids: map[uint64]int32{}}
}

func (m *model) id(seq uint64) int32 {
	id, ok := m.ids[seq]
	if !ok {
		id = int32(len(m.ids))
		m.ids[seq] = id
		m.seqs = append(m.seqs, seq)
	}
	return id
}

func (m *model) path(seqs []uint64) []int32 {
	ids := make([]int32, len(seqs))
	for i, s := range seqs {
		ids[i] = m.id(s)
	}
	return ids
}

func (m *model) add(id index.WorkerID, k index.Key) *modelWorker {
	for int(id) >= len(m.workers) {
		m.workers = append(m.workers, nil)
	}
	w := &modelWorker{key: k}
	w.clear(kvevent.AnyTier)
	m.workers[id] = w
	return w
}

func (m *model) worker(id index.WorkerID) *modelWorker {
	if int64(id) >= int64(len(m.workers)) {
		return nil
	}
	return m.workers[id]
}

// tier returns the fastest tier that holds the block, 0 if none.
func (w *modelWorker) tier(b int32) kvevent.Tier {
	if int(b) < len(w.held) {
		for t, n := range w.held[b] {
			if n > 0 {
				return kvevent.Tier(t + 1)
			}
		}
	}
	return 0
}

// blocks returns which blocks are resident or predicted.
func (w *modelWorker) blocks() (list []int32) {
	for b := range w.held {
		if _, ok := w.pred[int32(b)]; ok || w.tier(int32(b)) != 0 {
			list = append(list, int32(b))
		}
	}
	for b := range w.pred {
		if int(b) >= len(w.held) {
			list = append(list, b)
		}
	}
	return list
}

func (w *modelWorker) parked() (n int) {
	for _, o := range w.orphans {
		n += len(o.hashes) * o.each
	}
	return n
}

func (w *modelWorker) state() (index.State, string) {
	return stated{w.hasState, w.trust, w.why, w.received, w.refused, w.strange, false, len(w.orphans) > 0, w.lost, w.ahead}.trusted()
}

// stated holds the inputs of a worker's trust.
type stated struct {
	hasState                                              bool
	trust                                                 index.State
	why                                                   string
	received, refused, strange, full, parked, lost, ahead bool
}

func (s stated) trusted() (index.State, string) {
	t, why := index.Exact, ""
	if s.hasState {
		t, why = s.trust, s.why
	} else if !s.received {
		t, why = index.Unknown, "no events yet"
	}
	switch {
	case t <= index.Degraded:
		return t, why
	case s.refused:
		return index.Degraded, "stored blocks of another size"
	case s.strange:
		return index.Degraded, "stored blocks of a cache group whose use is unknown"
	case s.full:
		return index.Degraded, "stored blocks when the index was full"
	case s.parked:
		return index.Degraded, "stored blocks whose parent is unknown"
	case s.lost:
		return index.Degraded, "stored blocks that could not be placed"
	case s.ahead:
		return index.Degraded, "stored blocks that depend on tokens after them, which the scheme ignores"
	}
	return t, ""
}

// apply does what an index should do with the event.
func (m *model) apply(id index.WorkerID, ev *kvevent.Event) (res index.Result) {
	w, n := m.worker(id), len(ev.BlockHashes)
	if w == nil {
		return index.Result{Ignored: n}
	}
	w.received = true
	tier := cmp.Or(ev.Tier, kvevent.Device)
	if w.store != 0 { // it has one tier
		tier = min(tier, kvevent.NumTiers+1)
		if tier <= kvevent.NumTiers {
			tier = w.store
		}
	}
	switch ev.Kind {
	case kvevent.Stored, kvevent.Removed:
		if ev.Kind == kvevent.Stored && ev.Attention != kvevent.FullAttention {
			return m.storeGroup(w, ev)
		}
		if g := w.groups[ev.Group]; g != nil && ev.Kind == kvevent.Removed {
			return w.removeGroup(g, ev)
		}
		if ev.Attention != kvevent.FullAttention {
			return index.Result{Ignored: n}
		}
		if w.grouped && w.group != ev.Group || !w.grouped && ev.Kind == kvevent.Removed {
			return index.Result{Ignored: n}
		}
		if tier > kvevent.NumTiers {
			w.lost = true
			return index.Result{Ignored: n}
		}
		if ev.Kind == kvevent.Stored {
			return m.store(w, ev, tier)
		}
		for _, h := range ev.BlockHashes {
			k := w.remove(h, tier)
			if k == 0 {
				res.Ignored += max(w.each, 1)
			}
			res.Removed += k
		}
		return res
	case kvevent.Cleared:
		if ev.Attention != kvevent.FullAttention {
			return res
		}
		if w.store != 0 && ev.Tier <= kvevent.NumTiers {
			w.clear(kvevent.AnyTier)
		} else if ev.Tier <= kvevent.NumTiers {
			w.clear(ev.Tier)
		} else {
			w.lost = true
		}
		return res
	}
	return index.Result{Ignored: n}
}

func (m *model) store(w *modelWorker, ev *kvevent.Event, tier kvevent.Tier) (res index.Result) {
	n, each := len(ev.BlockHashes), max(w.each, 1)
	if ev.HasParent && slices.Contains(ev.BlockHashes, ev.Parent) {
		w.lost = true
		return index.Result{Ignored: n}
	}
	if size := int(ev.BlockSize); size != 0 {
		each = size / m.block
		if size < 0 || size%m.block != 0 || w.each != 0 && each != w.each {
			whole := w.each * m.block
			tail := n == 1 && size > 0 && size < whole && whole%size == 0 && len(ev.TokenIDs)/size == 1
			w.refused = w.refused || !tail
			return index.Result{Ignored: n}
		}
	}
	tokens, hashes, size := len(ev.TokenIDs), len(ev.LocalHashes)+len(ev.SequenceHashes), each*m.block
	if each > 1024 || each > 1 && hashes > 0 && hashes != n*each ||
		n > 0 && tokens > 0 && hashes == 0 && (tokens <= (n-1)*size || tokens >= (n+1)*size) {
		w.refused = true
		return index.Result{Ignored: n}
	}
	if !w.grouped {
		w.grouped, w.group = true, ev.Group
		if w.groups[ev.Group] != nil {
			w.groups, w.need, w.strange = nil, 0, true
		}
	}
	if ev.BlockSize != 0 || tokens+hashes > 0 {
		w.small = (w.small || w.each == 0) && n == 1 && (w.each != 0 || ev.BlockSize != 0 && tokens >= size)
		w.ahead = w.ahead || n > 0 && hashes == 0 && tokens > n*size
		w.each = each
		if w.groups != nil && w.groupEach != each {
			w.groups, w.need, w.strange = nil, 0, true
		}
	}
	r := modelRun{locals: ev.LocalHashes, seqs: ev.SequenceHashes, each: each, tier: tier}
	if len(r.locals) == 0 && len(r.seqs) == 0 && len(ev.TokenIDs) == 0 {
		for _, h := range ev.BlockHashes {
			p := w.locations[h]
			switch {
			case len(p) == 0:
				w.lost = true
				res.Ignored += each
			case w.hold(h, p[len(p)-1].blocks, tier):
				res.Stored += len(p[len(p)-1].blocks)
			default:
				res.Known += len(p[len(p)-1].blocks)
			}
		}
		return res
	}
	if len(r.seqs) > 0 {
		r.locals = r.seqs
	}
	if len(r.locals) == 0 {
		r.locals = m.opt.Scheme.With(ev.LoRA, ev.Namespace).AppendLocal(nil, ev.TokenIDs, m.block, &kvhash.Extras{BlockObjects: ev.Objects})
	}
	whole := min(n, len(r.locals)/each)
	r.hashes, r.locals = slices.Clone(ev.BlockHashes[:whole]), slices.Clone(r.locals[:whole*each])
	if len(r.seqs) > 0 {
		r.seqs = r.locals
	}
	if whole < n && len(ev.TokenIDs) == 0 {
		w.lost = true // a partial block has too few tokens; hashes are missing
	}
	o := modelOrphan{modelRun: r, parent: ev.Parent, gone: make([]bool, whole)}
	switch p := w.locations[ev.Parent]; {
	case !ev.HasParent:
		res = m.insert(w, o, 0, true)
	case len(p) > 0:
		last := p[len(p)-1].blocks
		res = m.insert(w, o, m.seqs[last[len(last)-1]], false)
	case whole > 0 && m.park(w, o):
		res.Pending = whole * each
	default:
		res.Ignored += whole * each
	}
	res.Ignored += (n - whole) * each
	return res
}

// storeGroup stores blocks of a group with another kind of attention than the one that counts.
func (m *model) storeGroup(w *modelWorker, ev *kvevent.Event) (res index.Result) {
	n, each := len(ev.BlockHashes), max(w.each, 1)
	if n == 0 {
		return res
	}
	if size := int(ev.BlockSize); size != 0 {
		each = size / m.block
	}
	bad := ev.BlockSize < 0 || int(ev.BlockSize)%m.block != 0 || w.each != 0 && w.each != each && !(w.small && each%w.each == 0 && ev.Tier == kvevent.Device && ev.Owner == "") || w.groups != nil && w.groupEach != each
	if ev.Attention != kvevent.SlidingWindow || ev.Window < 2 || ev.Tier > kvevent.Device || bad || w.grouped && w.group == ev.Group {
		w.strange = true
		return index.Result{Ignored: n}
	}
	size := int32(each * m.block)
	need := (ev.Window + size - 2) / size * int32(each)
	if w.groups == nil {
		w.groups, w.groupEach, w.need = map[int32]map[uint64]bool{}, each, need
	}
	w.strange = w.strange || need != w.need
	w.need = max(w.need, need)
	if w.groups[ev.Group] == nil {
		w.groups[ev.Group] = map[uint64]bool{}
	}
	for _, h := range ev.BlockHashes {
		if w.groups[ev.Group][h] {
			res.Known += each
		} else {
			res.Stored += each
		}
		w.groups[ev.Group][h] = true
	}
	return res
}

func (w *modelWorker) removeGroup(g map[uint64]bool, ev *kvevent.Event) (res index.Result) {
	for _, h := range ev.BlockHashes {
		if ev.Tier <= kvevent.Device && g[h] {
			delete(g, h)
			res.Removed += w.groupEach
		} else {
			res.Ignored += w.groupEach
		}
	}
	return res
}

// inGroups returns the blocks in a tier that all groups hold.
func (w *modelWorker) inGroups() map[int32]bool {
	in := map[int32]bool{}
	for h, list := range w.locations {
		all := true
		for _, g := range w.groups {
			all = all && g[h]
		}
		for _, b := range list[len(list)-1].blocks {
			if all {
				in[b] = true
			}
		}
	}
	return in
}

func (m *model) park(w *modelWorker, o modelOrphan) bool {
	limit := cmp.Or(m.opt.MaxPending, 1<<16)
	for i, q := range w.orphans {
		if q.parent == o.parent && q.tier == o.tier && slices.Equal(q.hashes, o.hashes) && slices.Equal(q.locals, o.locals) && (q.seqs == nil) == (o.seqs == nil) {
			w.orphans = append(slices.Delete(w.orphans, i, i+1), o)
			return true
		}
	}
	if len(o.hashes)*o.each > limit {
		w.lost = true
		return false
	}
	for w.parked()+len(o.hashes)*o.each > limit {
		w.lost = true
		w.orphans = w.orphans[1:]
	}
	w.orphans = append(w.orphans, o)
	return true
}

// waiting returns how many blocks are parked and not removed.
func (w *modelWorker) waiting() (n int) {
	for _, o := range w.orphans {
		for _, gone := range o.gone {
			if !gone {
				n += o.each
			}
		}
	}
	return n
}

// insert stores a run after the block with sequence hash seq, and then the orphans that waited for its blocks.
func (m *model) insert(w *modelWorker, o modelOrphan, seq uint64, first bool) (res index.Result) {
	type job struct {
		modelOrphan
		seq   uint64
		first bool
	}
	for todo := []job{{o, seq, first}}; len(todo) > 0; todo = todo[1:] {
		j := todo[0]
		for i, h := range j.hashes {
			var blocks []int32
			for k := i * j.each; k < (i+1)*j.each; k++ {
				switch {
				case j.seqs != nil:
					j.seq = j.seqs[k]
				case j.first:
					j.seq = j.locals[k]
				default:
					j.seq = kvhash.Next(j.seq, j.locals[k])
				}
				j.first = false
				blocks = append(blocks, m.id(j.seq))
			}
			if !j.gone[i] {
				if w.hold(h, blocks, j.tier) {
					res.Stored += len(blocks)
				} else {
					res.Known += len(blocks)
				}
			}
			w.orphans = slices.DeleteFunc(w.orphans, func(q modelOrphan) bool {
				if q.parent == h {
					todo = append(todo, job{q, j.seq, false})
				}
				return q.parent == h
			})
		}
	}
	return res
}

// hold notes that the blocks are in the tier under the engine hash, and reports whether that is new.
func (w *modelWorker) hold(hash uint64, blocks []int32, tier kvevent.Tier) bool {
	list := w.locations[hash]
	i := slices.IndexFunc(list, func(p modelLocation) bool { return slices.Equal(p.blocks, blocks) })
	if i < 0 {
		i = len(list)
		list = append(list, modelLocation{blocks: blocks})
		w.locations[hash] = list
	}
	if list[i].tiers[tier-1] {
		return false
	}
	list[i].tiers[tier-1] = true
	for _, b := range blocks {
		for int(b) >= len(w.held) {
			w.held = append(w.held, [kvevent.NumTiers]int{})
		}
		w.held[b][tier-1]++
		delete(w.pred, b)
	}
	return true
}

// remove takes the engine hash out of the tier and returns how many blocks that were.
func (w *modelWorker) remove(hash uint64, tier kvevent.Tier) (n int) {
	var left []modelLocation
	for _, p := range w.locations[hash] {
		if p.tiers[tier-1] {
			p.tiers[tier-1] = false
			for _, b := range p.blocks {
				w.held[b][tier-1]--
				n++
			}
		}
		if p.tiers != [kvevent.NumTiers]bool{} {
			left = append(left, p)
		}
	}
	if w.locations[hash] = left; len(left) == 0 {
		delete(w.locations, hash)
	}
	each := 0
	w.orphans = slices.DeleteFunc(w.orphans, func(o modelOrphan) bool {
		for i, h := range o.hashes {
			if h == hash && o.tier == tier && !o.gone[i] {
				o.gone[i], each = true, o.each
			}
		}
		return !slices.Contains(o.gone, false)
	})
	return n + each
}

func (w *modelWorker) clear(tier kvevent.Tier) {
	if tier == kvevent.AnyTier {
		w.locations, w.pred, w.held = map[uint64][]modelLocation{}, map[int32]modelDeadline{}, nil
		w.orphans, w.grouped, w.each, w.small, w.lost, w.refused, w.ahead = nil, false, 0, false, false, false, false
		w.groups, w.need, w.strange = nil, 0, false
		return
	}
	w.orphans = slices.DeleteFunc(w.orphans, func(o modelOrphan) bool { return o.tier == tier })
	orphans := w.orphans
	w.orphans = nil // blocks of other tiers stay unchanged
	for h := range w.locations {
		w.remove(h, tier)
	}
	w.orphans = orphans
	if tier == kvevent.Device {
		clear(w.pred)
		for _, g := range w.groups {
			clear(g)
		}
	}
}

func (w *modelWorker) predict(path []int32, until time.Time) modelPrediction {
	w.serial++
	p := modelPrediction{worker: w, serial: w.serial}
	for _, b := range path {
		if w.tier(b) != 0 {
			continue
		}
		if _, ok := w.pred[b]; !ok {
			p.fresh = append(p.fresh, b)
		}
		w.pred[b] = modelDeadline{until, p.serial}
	}
	return p
}

func (p *modelPrediction) takeBack(b int32) {
	if d, ok := p.worker.pred[b]; ok && d.serial == p.serial {
		delete(p.worker.pred, b)
	}
}

func (w *modelWorker) expire(b int32, now time.Time) {
	if d, ok := w.pred[b]; ok && !d.until.After(now) {
		delete(w.pred, b)
	}
}

func (m *model) expire(now time.Time) {
	for _, w := range m.workers {
		if w != nil {
			for b := range w.pred {
				w.expire(b, now)
			}
		}
	}
}

// match returns the expected result of a lookup for one worker; Depth is 0 if the worker must be absent.
func (w *modelWorker) match(id index.WorkerID, path []int32) index.Match {
	r := index.Match{Worker: id}
	r.State, _ = w.state()
	var in map[int32]bool
	if w.need > 0 {
		in = w.inGroups()
	}
	best, row := r, int32(0) // row: blocks before the depth that all groups hold
	for _, b := range path {
		t := w.tier(b)
		if t == 0 { // only in stores: the fastest of them
			for _, s := range w.stores {
				if s.tier(b) != 0 && (t == 0 || s.store < t) {
					t = s.store
				}
			}
		}
		_, predicted := w.pred[b]
		if t == 0 && !predicted {
			break
		}
		r.Depth++
		if t != 0 {
			r.Tiers[t-1]++
		} else {
			r.Predicted++
		}
		if row++; w.need > 0 && !in[b] && !predicted {
			row = 0
		}
		if row >= min(w.need, r.Depth) {
			best = r
		}
	}
	return best
}

func (m *model) match(path []int32) (out []index.Match) {
	for id, w := range m.workers {
		if w == nil || w.store != 0 {
			continue
		}
		if r := w.match(index.WorkerID(id), path); r.Depth > 0 {
			out = append(out, r)
		}
	}
	return out
}

func (m *model) states() (out []index.Info) {
	for id, w := range m.workers {
		if w != nil {
			s := index.Info{Worker: index.WorkerID(id), Key: w.key, Blocks: len(w.blocks()), Orphans: w.waiting()}
			s.State, s.Why = w.state()
			out = append(out, s)
		}
	}
	return out
}

// len returns the number of distinct blocks that any worker holds.
func (m *model) len() int {
	all := make([]bool, len(m.ids))
	n := 0
	for _, w := range m.workers {
		if w == nil {
			continue
		}
		for _, b := range w.blocks() {
			if !all[b] {
				all[b] = true
				n++
			}
		}
	}
	return n
}

// A prompt is a word with one letter for each block. The case of a letter selects the adapter, and digits are another
// namespace: 'b', 'B' and '1' are the same tokens for the base model, adapter x and namespace n.

const modelBlock = 2

func modelLoRA(letters string) string {
	if letters != strings.ToLower(letters) {
		return "x"
	}
	return ""
}

func modelNamespace(letters string) string {
	if strings.ContainsAny(letters, "0123") {
		return "n"
	}
	return ""
}

func modelScheme(letters string) kvhash.Scheme {
	return kvhash.Scheme{}.With(modelLoRA(letters), modelNamespace(letters))
}

// modelTokens returns the tokens of a word.
func modelTokens(letters string) (t []uint32) {
	for _, c := range []byte(strings.ToLower(letters)) {
		if c < 'a' {
			c += 'a' - '0'
		}
		t = append(t, uint32(c), uint32(c)*7)
	}
	return t
}

var modelLocals = func() (t [256]uint64) {
	for c := range t {
		s := string([]byte{byte(c)})
		t[c] = modelScheme(s).AppendLocal(nil, modelTokens(s), modelBlock, nil)[0]
	}
	return t
}()

func modelLocal(letters string) (local []uint64) {
	for _, c := range []byte(letters) {
		local = append(local, modelLocals[c])
	}
	return local
}

// modelHashes returns the sequence hashes of a word.
func modelHashes(letters string) []uint64 { return kvhash.AppendSequence(nil, modelLocal(letters)) }

// letters returns a word of n letters of one alphabet.
func letters(seed uint64, alphabet string, n int) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return string(b)
}

// engineHashes returns engine hashes for the blocks of a word, which depend on all letters up to the block as engines' do.
func engineHashes(word string, variant uint64) []uint64 {
	h := make([]uint64, len(word))
	sum := variant * 1_000_003
	for i := range h {
		sum = sum*0x9E3779B97F4A7C15 + uint64(word[i]) + 1
		h[i] = sum | 1<<40
	}
	return h
}

func TestAgainstModel(t *testing.T) {
	for range factor() { // times the value of -rapid.checks
		rapid.Check(t, func(t *rapid.T) { newHistory(t).run(t) })
	}
}

// history is a random history under way.
type history struct {
	x         *index.Index
	m         *model
	now       time.Time
	each      int  // of our blocks in one of the engines'
	small     bool // few and short prompts, many orphans and ambiguous engine hashes
	plain     bool // an engine hash always names the same block
	hybrid    bool // there are other cache groups
	ids       []index.WorkerID
	feeds     map[index.WorkerID]*modelFeed
	words     []string   // prompts, the newest last
	cuts      []int      // where runs began and ended
	stored    [][]uint64 // engine hashes of earlier events
	sent      []kvevent.Event
	predicted []prediction
	key       uint32
	steps     int

	got  []index.Match
	path map[string][]int32
}

// prediction is one of the index and of the model.
type prediction struct {
	p index.Prediction
	m modelPrediction
}

type modelFeed struct {
	feed *index.Stream
	in   *sequence.Tracker
	seq  uint64
	sent []kvevent.Batch
	rest bool // the worker has blocks from before the feed
}

func newHistory(t *rapid.T) *history {
	o := index.AllOptions{MaxPending: rapid.SampledFrom([]int{0, 1, 6, 60}).Draw(t, "max orphans"), PendingTTL: -1}
	h := &history{now: time.Unix(1000, 0), each: 1, feeds: map[index.WorkerID]*modelFeed{}, path: map[string][]int32{}}
	if rapid.IntRange(0, 4).Draw(t, "multiple") == 0 {
		h.each = rapid.IntRange(2, 4).Draw(t, "each")
		o.MaxPending = 0 // the workers of the counted blocks are not specified
	}
	h.x, h.m = index.NewAll(modelBlock, &o), newModel(modelBlock, o)
	h.plain = rapid.IntRange(0, 2).Draw(t, "plain") == 0
	h.hybrid = h.plain && rapid.Bool().Draw(t, "hybrid")
	if h.small = rapid.Bool().Draw(t, "small"); h.small {
		h.join(t, 2)
	} else {
		h.join(t, rapid.SampledFrom([]int{1, 2, 3, 3, 63}).Draw(t, "workers"))
	}
	return h
}

// join adds n workers.
func (h *history) join(t *rapid.T, n int) {
	for range n {
		k := index.Key{Instance: "e", DPRank: h.key}
		h.key++
		id := h.x.AddWorker(k)
		free := slices.IndexFunc(h.m.workers, func(w *modelWorker) bool { return w == nil })
		if h.m.worker(id) != nil || int(id) > len(h.m.workers) || int(id) == len(h.m.workers) && free >= 0 {
			t.Fatalf("number %d of %d, %d is free", id, len(h.m.workers), free)
		}
		h.m.add(id, k)
		h.ids = append(h.ids, id)
	}
}

func (h *history) worker(t *rapid.T) index.WorkerID {
	n := len(h.ids)
	if rapid.IntRange(0, 3).Draw(t, "few") > 0 {
		n = min(n, 3) // so that they meet
	}
	return h.ids[rapid.IntRange(0, n-1).Draw(t, "worker")]
}

// cut returns a number from 0 to n, often at or next to the beginning or end of a run.
func (h *history) cut(t *rapid.T, n int) int {
	if len(h.cuts) > 0 && rapid.Bool().Draw(t, "at a boundary") {
		return min(max(rapid.SampledFrom(h.cuts).Draw(t, "boundary")+rapid.IntRange(-1, 1).Draw(t, "offset"), 0), n)
	}
	return rapid.IntRange(0, n).Draw(t, "cut")
}

// word returns a prompt, an earlier one or one that leaves an earlier one somewhere.
func (h *history) word(t *rapid.T) string {
	word := ""
	if h.small && len(h.words) == 0 {
		h.words = []string{"aaaa", "aabb", "abab", "abba", "baaa", "bbab"}
	}
	if len(h.words) > 0 && rapid.IntRange(0, 5).Draw(t, "earlier") > 0 {
		word = rapid.SampledFrom(h.words).Draw(t, "word")
		if rapid.Bool().Draw(t, "as it was") {
			return word
		}
		word = word[:h.cut(t, len(word))]
	}
	if h.small {
		return rapid.StringMatching("[ab]{1,4}").Draw(t, "word")
	}
	alphabet := rapid.SampledFrom([]string{"ab", "ab", "ab", "AB", "01"}).Draw(t, "alphabet")
	n := rapid.SampledFrom([]int{1, 1, 2, 3, 5, 12, 40, 120}).Draw(t, "length")
	if rapid.Bool().Draw(t, "even") {
		alphabet = alphabet[:1]
	}
	word += letters(rapid.Uint64Range(0, 3).Draw(t, "seed"), alphabet, min(n, 200-len(word)))
	if !slices.Contains(h.words, word) {
		if h.words = append(h.words, word); len(h.words) > 10 {
			h.words = h.words[1:]
		}
	}
	return word
}

// event returns a random event.
func (h *history) event(t *rapid.T) (ev kvevent.Event) {
	ev.Tier = rapid.SampledFrom([]kvevent.Tier{0, 1, 1, 1, 2, 3, 4}).Draw(t, "tier")
	kind := rapid.IntRange(0, 20).Draw(t, "kind")
	if h.hybrid && len(h.stored) > 0 && rapid.IntRange(0, 2).Draw(t, "of another group") == 0 {
		return h.group(t)
	}
	switch {
	case kind < 8 || len(h.stored) == 0 && kind < 18:
		h.store(t, &ev)
		if h.sent = append(h.sent, ev); len(h.sent) > 6 {
			h.sent = h.sent[1:]
		}
	case kind < 10 && len(h.sent) > 0:
		return rapid.SampledFrom(h.sent).Draw(t, "once more")
	case kind < 12: // a copy
		ev.Kind, ev.BlockHashes = kvevent.Stored, h.some(t)
	case kind < 18:
		ev.Kind, ev.BlockHashes = kvevent.Removed, h.some(t)
	case kind < 19:
		ev.Kind = kvevent.Cleared
	default:
		h.odd(t, &ev)
	}
	return ev
}

// store makes ev the storing of a part of a prompt.
func (h *history) store(t *rapid.T, ev *kvevent.Event) {
	ev.Kind = kvevent.Stored
	word := h.word(t)
	if h.hybrid && h.each > 1 { // the tokens of mixed words are others than those in the hash, which would then name several blocks
		word = strings.NewReplacer("0", "a", "1", "b", "2", "a", "3", "b").Replace(strings.ToLower(word))
	}
	word = word[:len(word)-len(word)%h.each]
	if len(word) == 0 {
		word = strings.Repeat("a", h.each)
	}
	skip := min(h.cut(t, len(word)), len(word)-1)
	if !h.small && rapid.Bool().Draw(t, "whole") {
		skip = 0
	}
	skip -= skip % h.each
	if h.cuts = append(h.cuts, skip, len(word)); len(h.cuts) > 20 {
		h.cuts = h.cuts[2:]
	}
	hashes := engineHashes(word, rapid.SampledFrom([]uint64{1, 1, 1, 2}).Draw(t, "variant"))
	if h.hybrid {
		hashes = engineHashes(word, 1)
	}
	odd := []int{0, 0, 0, 0, 1, 2}
	if h.small {
		odd = odd[2:]
	}
	if h.plain {
		odd = odd[:1]
	}
	for range rapid.SampledFrom(odd).Draw(t, "say nothing") {
		hashes[rapid.IntRange(0, len(word)-1).Draw(t, "at")] = rapid.Uint64Range(1, 3).Draw(t, "hash")
	}
	for i := skip + h.each; i <= len(word); i += h.each {
		ev.BlockHashes = append(ev.BlockHashes, hashes[i-1])
	}
	if skip > 0 {
		ev.Parent, ev.HasParent = hashes[skip-1], true
	}
	ev.BlockSize = rapid.SampledFrom([]int32{0, modelBlock}).Draw(t, "size")
	if h.each > 1 {
		ev.BlockSize = int32(modelBlock * h.each)
	}
	// The letters of a prompt may change their alphabet on the way; one event has one adapter and one namespace.
	rest := word[skip:]
	one := modelLoRA(rest) == modelLoRA(rest[:1]) && modelNamespace(rest) == modelNamespace(rest[:1])
	mixed := !one || strings.ToUpper(rest) != rest && modelLoRA(rest) != "" || modelNamespace(rest) != "" && strings.Trim(rest, "01") != ""
	switch {
	case mixed || h.each == 1 && rapid.IntRange(0, 4).Draw(t, "hashed") == 0:
		if h.each > 1 { // the number of local hashes per engine block is not specified
			rest = strings.Repeat("a", len(rest))
			ev.TokenIDs = modelTokens(rest)
			break
		}
		ev.LocalHashes = modelLocal(rest)
	default:
		ev.TokenIDs, ev.LoRA, ev.Namespace = modelTokens(rest), modelLoRA(rest), modelNamespace(rest)
	}
	if h.each == 1 && len(ev.TokenIDs) > 0 && rapid.IntRange(0, 15).Draw(t, "image") == 0 {
		ev.Objects = [][]uint64{nil, {7, 3}}
		for i := 1; i < len(ev.BlockHashes); i++ { // an engine would call them otherwise
			ev.BlockHashes[i] ^= 1 << 41
		}
	}
	chainGiven(t, h, ev, word, skip)
	if h.stored = append(h.stored, ev.BlockHashes); len(h.stored) > 12 {
		h.stored = h.stored[1:]
	}
}

// some returns engine hashes of an earlier event: all, a part, backwards, every second.
func (h *history) some(t *rapid.T) []uint64 {
	if len(h.stored) == 0 {
		return []uint64{1}
	}
	list := rapid.SampledFrom(h.stored).Draw(t, "earlier event")
	if rapid.Bool().Draw(t, "a part") {
		from := rapid.IntRange(0, len(list)-1).Draw(t, "from")
		list = list[from:rapid.IntRange(from+1, len(list)).Draw(t, "to")]
	}
	list = slices.Clone(list)
	switch rapid.IntRange(0, 5).Draw(t, "order") {
	case 0:
		slices.Reverse(list)
	case 1:
		for i := range (len(list) + 1) / 2 {
			list[i] = list[2*i]
		}
		list = list[:(len(list)+1)/2]
	}
	return list
}

// group returns an event of a group with a sliding window, mostly of group 1 with a window of 6 tokens.
func (h *history) group(t *rapid.T) (ev kvevent.Event) {
	ev.Kind, ev.BlockHashes, ev.Group = kvevent.Stored, h.some(t), rapid.SampledFrom([]int32{1, 1, 1, 1, 2}).Draw(t, "group")
	if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
		ev.Kind = kvevent.Removed
		return ev
	}
	ev.Attention, ev.Window = kvevent.SlidingWindow, 6
	if h.each > 1 {
		ev.BlockSize = int32(modelBlock * h.each)
	}
	switch rapid.IntRange(0, 60).Draw(t, "odd") {
	case 0:
		ev.Window = rapid.SampledFrom([]int32{0, 1, 2, 100}).Draw(t, "window")
	case 1:
		ev.Attention = kvevent.StateSpace
	case 2:
		ev.BlockSize = rapid.SampledFrom([]int32{-2, 3, 8}).Draw(t, "size")
	case 3:
		ev.Tier = kvevent.Host
	case 4:
		ev.Group = 0
	}
	return ev
}

// odd makes ev an event with a fault, or one that does not count.
func (h *history) odd(t *rapid.T, ev *kvevent.Event) {
	h.store(t, ev)
	switch rapid.IntRange(0, 10).Draw(t, "fault") {
	case 0: // too few tokens; the last block is partial or the size wrong
		ev.TokenIDs = ev.TokenIDs[:rapid.IntRange(0, len(ev.TokenIDs)).Draw(t, "tokens")]
		ev.Objects = nil
	case 1: // too many
		if len(ev.TokenIDs) > 0 {
			ev.TokenIDs = append(ev.TokenIDs, 1)
		}
	case 2:
		ev.BlockSize = rapid.SampledFrom([]int32{-2, 1, 3, 5}).Draw(t, "size")
	case 3:
		ev.Tier = 5
	case 4:
		ev.Attention = kvevent.SlidingWindow
	case 5:
		ev.Group = 1
	case 6: // its own parent
		ev.Parent, ev.HasParent = ev.BlockHashes[len(ev.BlockHashes)-1], true
	case 7:
		ev.BlockHashes = nil
	case 8:
		ev.Kind = kvevent.Kind(rapid.SampledFrom([]int{0, 4, 77}).Draw(t, "kind"))
	case 9: // of another group
		ev.Kind, ev.Group = kvevent.Removed, 1
	case 10:
		ev.LocalHashes = ev.LocalHashes[:rapid.IntRange(0, len(ev.LocalHashes)).Draw(t, "hashes")]
	}
}

func (h *history) apply(t *rapid.T, id index.WorkerID, ev *kvevent.Event) {
	got := h.x.Add(id, ev)
	want := h.m.apply(id, ev)
	if got != want && h.each == 1 {
		t.Fatalf("result %+v, model %+v", got, want)
	}
}

func (h *history) run(t *rapid.T) {
	ops := map[string]func(*rapid.T){
		"event":  h.one,
		"event2": h.one,
		"event3": h.one,
		"all": func(t *rapid.T) { // one event for every worker
			ev := h.event(t)
			for _, id := range h.ids {
				h.apply(t, id, &ev)
			}
		},
		"grow": func(t *rapid.T) {
			if len(h.ids) < 200 {
				h.join(t, rapid.SampledFrom([]int{1, 1, 1, 62, 70}).Draw(t, "more"))
			}
		},
		"rejoin": func(t *rapid.T) {
			for range rapid.IntRange(1, 2).Draw(t, "leave") {
				if len(h.ids) == 1 {
					break
				}
				id := h.worker(t)
				if rapid.Bool().Draw(t, "leave trash") {
					h.x.RemoveOnly(id)
				} else {
					h.x.RemoveWorker(id)
				}
				h.m.workers[id] = nil
				delete(h.feeds, id)
				h.ids = slices.DeleteFunc(h.ids, func(q index.WorkerID) bool { return q == id })
			}
			if rapid.Bool().Draw(t, "back") {
				h.join(t, 1)
			}
		},
		"clear": func(t *rapid.T) {
			id := h.worker(t)
			if rapid.Bool().Draw(t, "leave trash") {
				h.x.ClearOnly(id)
			} else {
				h.x.Clear(id)
			}
			h.m.worker(id).clear(kvevent.AnyTier)
			h.m.worker(id).received = true
		},
		"sweep": func(t *rapid.T) { h.x.Sweep(rapid.IntRange(1, 40).Draw(t, "limit")) },
		"trust": func(t *rapid.T) {
			id, trust := h.worker(t), index.State(rapid.IntRange(0, 2).Draw(t, "trust"))
			why := []string{"nothing received", "lost some", ""}[trust]
			h.x.SetState(id, trust, why)
			w := h.m.worker(id)
			w.hasState, w.trust, w.why = true, trust, why
		},
		"predict": func(t *rapid.T) {
			id, word, until := h.worker(t), h.word(t), h.until(t)
			from := h.cut(t, len(word))
			p := prediction{h.x.Predict(id, modelHashes(word), from, until), h.m.worker(id).predict(h.m.path(modelHashes(word))[from:], until)}
			if h.predicted = append(h.predicted, p); len(h.predicted) > 6 {
				h.predicted = h.predicted[1:]
			}
		},
		"unpredict": func(t *rapid.T) {
			if len(h.predicted) == 0 {
				t.Skip("nothing predicted")
			}
			p := rapid.SampledFrom(h.predicted).Draw(t, "prediction")
			h.x.Unpredict(p.p)
			for _, b := range p.m.fresh {
				p.m.takeBack(b)
			}
		},
		"time": func(t *rapid.T) {
			h.now = h.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second)
			h.x.Expire(h.now)
			h.m.expire(h.now)
		},
		"feed": h.feed,
		"":     h.check,
	}
	moreOps(h, ops)
	t.Repeat(ops)
	require.NoError(t, h.x.Check())
	for _, id := range h.ids {
		h.x.RemoveWorker(id)
	}
	require.NoError(t, h.x.Check())
	for h.x.Sweep(100) {
	}
	require.Zero(t, h.x.Len())
	require.Empty(t, h.x.AppendInfos(nil))
}

func (h *history) one(t *rapid.T) {
	id, ev := h.worker(t), h.event(t)
	h.apply(t, id, &ev)
}

func (h *history) until(t *rapid.T) time.Time {
	return h.now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "until")) * time.Second)
}

// feed sends a batch through a worker's feed, in order or not, or does what a feed asks for. The model takes the order
// of the batches from its own tracker.
func (h *history) feed(t *rapid.T) {
	id := h.worker(t)
	f := h.feeds[id]
	if f == nil {
		o := &sequence.Options{MaxHeld: 3, Window: 8}
		f = &modelFeed{feed: h.x.NewStreamOf(id, o), in: sequence.New(o), rest: h.m.worker(id).received}
		h.feeds[id] = f
	}
	var ready []kvevent.Batch
	switch do := rapid.IntRange(0, 12).Draw(t, "do"); do {
	case 0: // lost
		f.sent = append(f.sent, kvevent.Batch{Seq: f.seq, Events: []kvevent.Event{h.event(t)}})
		f.seq++
		return
	case 1: // the engine was restarted
		f.seq, f.sent = 0, nil
		fallthrough
	default:
		b := kvevent.Batch{Seq: f.seq}
		for range rapid.IntRange(0, 2).Draw(t, "events") {
			b.Events = append(b.Events, h.event(t))
		}
		f.seq++
		f.sent = append(f.sent, b)
		f.feed.Add(b)
		ready = f.in.Append(nil, b)
	case 2: // repeated
		if len(f.sent) == 0 {
			return
		}
		b := rapid.SampledFrom(f.sent).Draw(t, "batch")
		f.feed.Add(b)
		ready = f.in.Append(nil, b)
	case 3, 4:
		for _, b := range f.sent {
			if b.Seq >= from(f.feed) {
				f.feed.AddReplay(b)
				ready = append(ready, f.in.AppendReplay(nil, b)...)
			}
		}
		f.feed.FinishReplay()
		f.in.FinishReplay()
	case 5:
		f.feed.Skip()
		ready = f.in.Skip(nil)
	case 6:
		var events []kvevent.Event
		for range rapid.IntRange(0, 3).Draw(t, "events") {
			events = append(events, h.event(t))
		}
		seq := from(f.feed) + uint64(rapid.IntRange(0, 2).Draw(t, "later"))
		f.seq = max(f.seq, seq+1)
		f.feed.Replace(seq, events)
		h.m.worker(id).clear(kvevent.AnyTier)
		f.rest = false
		for i := range events {
			h.m.apply(id, &events[i])
		}
		ready = f.in.Replace(nil, seq)
	}
	for i := range ready {
		if f.rest && ready[i].Seq == 0 {
			h.m.worker(id).clear(kvevent.AnyTier)
		}
		f.rest = false
		for j := range ready[i].Events {
			h.m.apply(id, &ready[i].Events[j])
		}
	}
	n, seq := f.in.Need()
	requireNeed(t, index.Need(n), seq, f.feed)
	w := h.m.worker(id)
	w.hasState = true
	state, why := f.in.State()
	w.trust, w.why = index.State(state), why
}

// check compares all results.
func (h *history) check(t *rapid.T) {
	if h.steps++; h.steps%8 == 0 { // slow
		if err := h.x.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := h.x.Len(), h.m.len(); got != want && !h.x.Garbage() {
		t.Fatalf("%d blocks, model %d", got, want)
	}
	states := h.x.AppendInfos(nil)
	want := h.m.states()
	if h.each > 1 {
		for i := range states {
			states[i].Orphans, want[i].Orphans = min(states[i].Orphans, 1), min(want[i].Orphans, 1)
		}
	}
	if !slices.Equal(want, states) {
		d := gocmp.Diff(want, states)
		t.Fatalf("states (-model +index):\n%s", d)
	}
	for _, word := range h.words {
		hashes := modelHashes(word)
		path, ok := h.path[word]
		if !ok {
			path = h.m.path(hashes)
			h.path[word] = path
		}
		h.compare(t, word, hashes, path)
	}
	if len(h.words) > 0 { // shorter than an edge, or ending outside what is known
		word := rapid.SampledFrom(h.words).Draw(t, "query")
		word = word[:h.cut(t, len(word))] + rapid.SampledFrom([]string{"", "", "b", "c"}).Draw(t, "ending")
		h.compare(t, word, modelHashes(word), h.m.path(modelHashes(word)))
	}
}

func (h *history) compare(t *rapid.T, word string, hashes []uint64, path []int32) {
	h.got = h.x.AppendMatches(h.got[:0], hashes)
	if err := sameMatches(h.m.match(path), h.got); err != nil {
		t.Fatalf("match %q: %v", word, err)
	}
	searchToo(t, h, hashes, path)
	n := h.steps % (len(h.m.workers) + 2)
	h.got = h.x.AppendBest(h.got[:0], hashes, n)
	if err := sameMatches(deepest(h.m.match(path), n), h.got); err != nil {
		t.Fatalf("best %d of %q: %v", n, word, err)
	}
}

// deepest returns the n deepest matches, of equal ones those with the lowest IDs.
func deepest(all []index.Match, n int) []index.Match {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b index.Match) int {
		return cmp.Or(cmp.Compare(b.Depth, a.Depth), cmp.Compare(a.Worker, b.Worker))
	})
	return all[:min(n, len(all))]
}

// sameMatches compares the result of a lookup with the model's.
func sameMatches(want, got []index.Match) error {
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || resultOf(&want[i]) != resultOf(&got[i]) {
			return fmt.Errorf("entry %d differs:\nmodel %+v\nindex %+v", i, want[i:min(i+1, len(want))], got[i:min(i+1, len(got))])
		}
	}
	return nil
}

// answer is the result of a lookup for one worker.
type answer struct {
	worker    index.WorkerID
	depth     int32
	tiers     [kvevent.NumTiers]int32
	predicted int32
	trust     index.State
}

func resultOf(m *index.Match) answer {
	return answer{m.Worker, m.Depth, m.Tiers, m.Predicted, m.State}
}
