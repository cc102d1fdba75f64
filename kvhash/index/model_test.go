// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// The model names a block by its path: one letter for each block up to it. The adapter is part of the letter: blocks of adapter x are
// capitals, those of the base model are not. The model keeps lists and scans them.

const modelBlock = 2

type model struct {
	workers     map[index.WorkerID]*modelWorker
	predictions []modelPrediction
}

type modelPrediction struct {
	p      index.Prediction
	until  time.Time
	worker *modelWorker
	fresh  []string
}

type modelWorker struct {
	places  []modelPlace // in order of announcement
	orphans []modelOrphan
	pred    map[string]time.Time
	by      map[string]int // the prediction that says so
	lost    bool
	heard   bool
}

type modelPlace struct {
	hash uint64
	path string
	tier kvevent.Tier
}

type modelOrphan struct {
	parent uint64
	hashes []uint64
	letter string // one for each block
	tier   kvevent.Tier
	gone   []bool
}

const modelMaxOrphans = 6

func (w *modelWorker) has(path string) bool {
	_, predicted := w.pred[path]
	return predicted || w.tier(path) != 0
}

// tier returns the fastest tier that holds the block, 0 if none.
func (w *modelWorker) tier(path string) (best kvevent.Tier) {
	for _, p := range w.places {
		if p.path == path && (best == 0 || p.tier < best) {
			best = p.tier
		}
	}
	return best
}

// last returns where an engine hash stands: of its places that hold something, the one that came to be last.
func (w *modelWorker) last(hash uint64) (path string, ok bool) {
	var order []string
	for _, p := range w.places {
		if p.hash == hash && !slices.Contains(order, p.path) {
			order = append(order, p.path)
		}
	}
	if len(order) == 0 {
		return "", false
	}
	return order[len(order)-1], true
}

func (w *modelWorker) hold(p modelPlace) {
	if slices.Contains(w.places, p) {
		return
	}
	w.places = append(w.places, p)
	delete(w.pred, p.path)
}

func (w *modelWorker) store(letters string, hashes []uint64, parent *uint64, tier kvevent.Tier) {
	w.heard = true
	if parent != nil && slices.Contains(hashes, *parent) || len(hashes) == 0 {
		return
	}
	o := modelOrphan{hashes: hashes, letter: letters, tier: tier, gone: make([]bool, len(hashes))}
	if parent == nil {
		w.place(o, "")
		return
	}
	o.parent = *parent
	if path, ok := w.last(*parent); ok {
		w.place(o, path)
		return
	}
	for i, q := range w.orphans {
		if q.parent == o.parent && q.tier == o.tier && slices.Equal(q.hashes, o.hashes) && q.letter == o.letter {
			w.orphans[i].gone = o.gone
			return
		}
	}
	if len(hashes) > modelMaxOrphans {
		w.lost = true
		return
	}
	for w.parked()+len(hashes) > modelMaxOrphans {
		w.lost = true
		w.orphans = w.orphans[1:]
	}
	w.orphans = append(w.orphans, o)
}

func (w *modelWorker) parked() (n int) {
	for _, o := range w.orphans {
		n += len(o.hashes)
	}
	return n
}

func (w *modelWorker) place(o modelOrphan, path string) {
	type job struct {
		o    modelOrphan
		path string
	}
	for todo := []job{{o, path}}; len(todo) > 0; todo = todo[1:] {
		o, path := todo[0].o, todo[0].path
		for i, h := range o.hashes {
			path += o.letter[i : i+1]
			if !o.gone[i] {
				w.hold(modelPlace{h, path, o.tier})
			}
			w.orphans = slices.DeleteFunc(w.orphans, func(q modelOrphan) bool {
				if q.parent == h {
					todo = append(todo, job{q, path})
				}
				return q.parent == h
			})
		}
	}
}

func (w *modelWorker) remove(hash uint64, tier kvevent.Tier) {
	w.heard = true
	w.places = slices.DeleteFunc(w.places, func(p modelPlace) bool { return p.hash == hash && p.tier == tier })
	w.orphans = slices.DeleteFunc(w.orphans, func(o modelOrphan) bool {
		for i, h := range o.hashes {
			if h == hash && o.tier == tier {
				o.gone[i] = true
			}
		}
		return !slices.Contains(o.gone, false)
	})
}

func (w *modelWorker) clear(tier kvevent.Tier) {
	w.heard = true
	if tier == kvevent.AnyTier {
		*w = modelWorker{pred: map[string]time.Time{}, by: map[string]int{}, heard: true}
		return
	}
	w.places = slices.DeleteFunc(w.places, func(p modelPlace) bool { return p.tier == tier })
	w.orphans = slices.DeleteFunc(w.orphans, func(o modelOrphan) bool { return o.tier == tier })
	if tier == kvevent.Device {
		clear(w.pred)
	}
}

func (m *model) match(letters string) (out []index.Match) {
	for id := range index.WorkerID(8) {
		w := m.workers[id]
		if w == nil {
			continue
		}
		r := index.Match{Worker: id}
		for i := range letters {
			path := letters[:i+1]
			if !w.has(path) {
				break
			}
			r.Depth++
			if t := w.tier(path); t != 0 {
				r.Tiers[t-1]++
			} else {
				r.Predicted++
			}
		}
		r.Trust = kvevent.Exact
		switch {
		case !w.heard:
			r.Trust = kvevent.Unknown
		case w.lost || len(w.orphans) > 0:
			r.Trust = kvevent.Degraded
		}
		if r.Depth > 0 {
			out = append(out, r)
		}
	}
	return out
}

// modelTokens returns the tokens of a path; the case of its letters does not matter.
func modelTokens(letters string) (t []uint32) {
	for _, c := range []byte(strings.ToLower(letters)) {
		t = append(t, uint32(c), uint32(c)*7)
	}
	return t
}

// modelHashes returns the sequence hashes of a path.
func modelHashes(letters string) []uint64 {
	var local []uint64
	for _, c := range letters {
		local = modelScheme(string(c)).AppendLocal(local, modelTokens(string(c)), modelBlock, nil)
	}
	return kvhash.AppendSequence(nil, local)
}

// modelLoRA returns the adapter of a run of blocks.
func modelLoRA(letters string) string {
	if letters != strings.ToLower(letters) {
		return "x"
	}
	return ""
}

func modelScheme(letters string) kvhash.Scheme {
	return kvhash.Dynamo(&kvhash.DynamoOptions{LoRA: modelLoRA(letters)})
}

func TestAgainstModel(t *testing.T) {
	for range 20 { // 20 times what -rapid.checks says
		rapid.Check(t, againstModel)
	}
}

// againstModel applies random events to an index and to the model and compares every answer.
func againstModel(t *rapid.T) {
	x := index.New(modelBlock, &index.Options{MaxOrphans: modelMaxOrphans})
	m := &model{workers: map[index.WorkerID]*modelWorker{}}
	now := time.Unix(1000, 0)
	join := func(i int) {
		id := x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
		if m.workers[id] == nil {
			m.workers[id] = &modelWorker{pred: map[string]time.Time{}, by: map[string]int{}}
		}
	}
	for i := range 3 {
		join(i)
	}
	letters := rapid.StringMatching("[ab]{1,5}|[ab]{1,5}|[AB]{1,5}")
	worker := rapid.Custom(func(t *rapid.T) index.WorkerID { return index.WorkerID(rapid.IntRange(0, 2).Draw(t, "worker")) })
	// Engine hashes follow the path as engines' do, in two variants, with now and then one that says nothing.
	engine := func(t *rapid.T, path string) uint64 {
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			return uint64(rapid.IntRange(1, 5).Draw(t, "hash"))
		}
		h := uint64(rapid.IntRange(1, 2).Draw(t, "variant")) * 1000
		for _, c := range []byte(path) {
			h = h*31 + uint64(c)
		}
		return h
	}
	tier := rapid.SampledFrom([]kvevent.Tier{kvevent.Device, kvevent.Device, kvevent.Host, kvevent.Remote})
	var seen []uint64

	t.Repeat(map[string]func(*rapid.T){
		"store": func(t *rapid.T) {
			id, tier := worker.Draw(t, "worker"), tier.Draw(t, "tier")
			path := letters.Draw(t, "path")
			skip := rapid.IntRange(0, len(path)-1).Draw(t, "skip")
			ev := kvevent.Event{Kind: kvevent.Stored, Tier: tier, LoRA: modelLoRA(path), TokenIDs: modelTokens(path[skip:]), BlockSize: modelBlock}
			for i := skip; i < len(path); i++ {
				ev.BlockHashes = append(ev.BlockHashes, engine(t, path[:i+1]))
			}
			var parent *uint64
			if skip > 0 {
				ev.Parent, ev.HasParent = engine(t, path[:skip]), true
				parent = &ev.Parent
			}
			seen = append(seen, ev.BlockHashes...)
			x.Apply(id, &ev)
			m.workers[id].store(path[skip:], slices.Clone(ev.BlockHashes), parent, tier)
		},
		"storeKnown": func(t *rapid.T) {
			if len(seen) == 0 {
				t.Skip("nothing stored")
			}
			id, h, tier := worker.Draw(t, "worker"), rapid.SampledFrom(seen).Draw(t, "hash"), tier.Draw(t, "tier")
			x.Apply(id, &kvevent.Event{Kind: kvevent.Stored, Tier: tier, BlockHashes: []uint64{h}})
			w := m.workers[id]
			w.heard = true
			if path, ok := w.last(h); ok {
				w.hold(modelPlace{h, path, tier})
			} else {
				w.lost = true
			}
		},
		"remove": func(t *rapid.T) {
			if len(seen) == 0 {
				t.Skip("nothing stored")
			}
			id, tier := worker.Draw(t, "worker"), tier.Draw(t, "tier")
			hashes := rapid.SliceOfN(rapid.SampledFrom(seen), 1, 3).Draw(t, "hashes")
			x.Apply(id, &kvevent.Event{Kind: kvevent.Removed, Tier: tier, BlockHashes: hashes})
			for _, h := range hashes {
				m.workers[id].remove(h, tier)
			}
		},
		"clear": func(t *rapid.T) {
			id := worker.Draw(t, "worker")
			tier := rapid.SampledFrom([]kvevent.Tier{kvevent.AnyTier, kvevent.Device, kvevent.Host}).Draw(t, "tier")
			x.Apply(id, &kvevent.Event{Kind: kvevent.Cleared, Tier: tier})
			m.workers[id].clear(tier)
		},
		"rejoin": func(t *rapid.T) {
			id := worker.Draw(t, "worker")
			s, _ := x.State(id)
			x.RemoveWorker(id)
			delete(m.workers, id)
			join(int(s.Key.DPRank))
		},
		"predict": func(t *rapid.T) {
			id, path := worker.Draw(t, "worker"), letters.Draw(t, "path")
			until := now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "for")) * time.Second)
			from := rapid.IntRange(0, len(path)).Draw(t, "from")
			p := modelPrediction{p: x.Predict(id, modelHashes(path), from, until), until: until, worker: m.workers[id]}
			for i := range path[from:] {
				b, w := path[:from+i+1], m.workers[id]
				if w.tier(b) != 0 || !w.pred[b].Before(until) {
					continue
				}
				if _, ok := w.pred[b]; !ok {
					p.fresh = append(p.fresh, b)
				}
				w.pred[b] = until
				w.by[b] = len(m.predictions)
			}
			m.predictions = append(m.predictions, p)
		},
		"unpredict": func(t *rapid.T) {
			if len(m.predictions) == 0 {
				t.Skip("nothing predicted")
			}
			i := rapid.IntRange(0, len(m.predictions)-1).Draw(t, "prediction")
			p := m.predictions[i]
			x.Unpredict(p.p)
			for _, b := range p.fresh {
				if _, ok := p.worker.pred[b]; ok && p.worker.by[b] == i {
					delete(p.worker.pred, b)
				}
			}
		},
		"time": func(t *rapid.T) {
			now = now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second)
			x.Expire(now)
			for _, w := range m.workers {
				for p, until := range w.pred {
					if !until.After(now) {
						delete(w.pred, p)
					}
				}
			}
		},
		"": func(t *rapid.T) {
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				path := letters.Draw(t, "query")
				got := x.Match(nil, modelHashes(path))
				if d := cmp.Diff(m.match(path), got); d != "" {
					t.Fatalf("match %q (-model +index):\n%s", path, d)
				}
			}
		},
	})

	for id := range m.workers {
		x.RemoveWorker(id)
	}
	require.NoError(t, x.Check())
	require.Zero(t, x.Len())
}
