// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// lines calls f with the lines of a file of recordings of living engines.
func lines(t *testing.T, f func(line []byte), path ...string) {
	t.Helper()
	in, err := os.Open(shared(t, append([]string{"kv", "live"}, path...)...))
	require.NoError(t, err)
	defer in.Close()
	s := bufio.NewScanner(in)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	require.NoError(t, s.Err())
}

// vllmLine is a line of a recording of vLLM: a message, a request with the number of its tokens that vLLM found in its
// cache, or a note.
type vllmLine struct {
	Ev *struct {
		Topic string
		Seq   uint64
		Raw   []byte
	}
	Req *struct {
		IDs    []uint32
		Cached int
		Salt   string `json:"cache_salt"`
	}
	Note string
}

// vllmRuns are the recordings of vLLM 0.32 that belong to one run of the engine, and what must come out.
var vllmRuns = []struct {
	files  []string
	hashes int // blocks whose hashes equal ours; 0 if the engine hashes pickles
	// requests, and those for which the index reports as many tokens as the engine found, or more; it never reports fewer. It
	// reports more after a reset of the cache, which the engine does not announce before the next step.
	requests, equal, more int
}{
	{files: []string{"grow", "salt", "reset", "many"}, hashes: 650, requests: 179, equal: 178, more: 1},
	{files: []string{"restart"}, hashes: 22, requests: 4, equal: 3, more: 1},
	{files: []string{"evict"}, hashes: 3337, requests: 183, equal: 183},
	{files: []string{"sha256"}, requests: 163, equal: 163},
	{files: []string{"gptoss"}, hashes: 634, requests: 140, equal: 140},
	{files: []string{"gptoss2"}, hashes: 660, requests: 140, equal: 140},
	{files: []string{"gptoss-evict"}, hashes: 1106, requests: 119, equal: 119},
}

// TestLiveVLLM replays what a vLLM 0.32 published: kvhash computes the same hashes, and before each request the index
// holds what the engine finds.
func TestLiveVLLM(t *testing.T) {
	const block = 32
	for i, tt := range vllmRuns {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(tt.files[0], func(t *testing.T) {
			x := index.New(block, nil)
			id := x.AddWorker(index.Key{Instance: "vllm"})
			d := kvevent.NewDecoder(kvevent.VLLM, nil)
			s := x.NewStream(id, &index.StreamOptions{Copies: true})
			var hashes digests
			requests, equal, more := 0, 0, 0
			for i, name := range tt.files {
				lines(t, func(line []byte) {
					var l vllmLine
					require.NoError(t, json.Unmarshal(line, &l))
					switch {
					case l.Ev != nil:
						number := binary.BigEndian.AppendUint64(nil, l.Ev.Seq)
						batches, err := d.AppendFrames(nil, [][]byte{[]byte(l.Ev.Topic), number, l.Ev.Raw})
						require.NoError(t, err)
						require.Len(t, batches, 1)
						require.Equal(t, l.Ev.Topic, d.Topic())
						if i == 0 && l.Ev.Seq > 0 && requests == 0 {
							t.Fatal("the first batch is missing")
						}
						for i, e := range batches[0].Events {
							kind, _ := d.Field(0, i, "kv_cache_spec_kind")
							require.True(t, e.Kind != kvevent.Stored || e.Attention == map[any]kvevent.Attention{"full_attention": kvevent.FullAttention,
								"sliding_window": kvevent.SlidingWindow}[kind])
							require.True(t, (e.Attention == kvevent.SlidingWindow) == (e.Window == 128))
							hashes.verify(t, &e)
						}
						s.Add(batches...)
					case l.Req != nil:
						requests++
						most := (len(l.Req.IDs) - 1) / block // the last token is always computed
						seq := kvhash.Scheme{}.With("", l.Req.Salt).AppendBlocks(nil, l.Req.IDs, block, nil)
						_, m := x.Best(seq[:most])
						switch found := int(m.Depth) * block; {
						case found == l.Req.Cached:
							equal++
						case found > l.Req.Cached:
							more++
						}
					}
				}, "vllm", name+".jsonl")
			}
			require.Equal(t, []int{tt.requests, tt.equal, tt.more}, []int{requests, equal, more})
			require.Equal(t, tt.hashes, hashes.equal)
			w, _ := x.Worker(id)
			require.Equal(t, index.Exact, w.State)
		})
	}
}

// TestLiveReplay decodes a replay, as a DEALER received it, and compares its batches with the live stream.
func TestLiveReplay(t *testing.T) {
	live := map[uint64][]kvevent.Batch{}
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	lines(t, func(line []byte) {
		var l vllmLine
		require.NoError(t, json.Unmarshal(line, &l))
		if l.Ev != nil {
			batches, err := d.AppendFrames(nil, [][]byte{[]byte(l.Ev.Topic), binary.BigEndian.AppendUint64(nil, l.Ev.Seq), l.Ev.Raw})
			require.NoError(t, err)
			live[l.Ev.Seq] = []kvevent.Batch{batches[0].Clone()}
		}
	}, "vllm", "gptoss2.jsonl")
	next := uint64(0)
	ended := false
	lines(t, func(line []byte) {
		var frames [][]byte
		require.NoError(t, json.Unmarshal(line, &frames))
		batches, err := d.AppendFrames(nil, frames)
		require.NoError(t, err)
		if ended = batches[0].Seq == kvevent.EndOfReplay; !ended {
			require.Equal(t, "kv@127.0.0.1:18120@tiny", d.Topic())
			require.Equal(t, live[next], batches)
			next++
		}
	}, "vllm", "gptoss.replay.jsonl")
	require.True(t, ended)
	require.EqualValues(t, len(live), next)
}

// digests verifies the hashes of blocks with full attention.
type digests struct {
	scheme string // "" before the first block, "none" if the engine hashes pickles
	equal  int
	of     map[uint64][]byte
}

// verify hashes the blocks of an event after its parent and compares their numbers.
func (d *digests) verify(t *testing.T, e *kvevent.Event) {
	t.Helper()
	if e.Kind != kvevent.Stored || e.Attention != kvevent.FullAttention || d.scheme == "none" {
		return
	}
	for _, c := range [][2]string{{"vllm_sha256_cbor", ""}, {"vllm_sha256_cbor", "0"}, {"vllm_xxhash_cbor", "0"}} {
		if d.scheme != "" && d.scheme != fmt.Sprint(c) {
			continue
		}
		s, err := kvhash.Lookup(c[0], &kvhash.Options{Seed: c[1], Salt: e.Namespace})
		require.NoError(t, err)
		if e.HasParent {
			require.Contains(t, d.of, e.Parent)
			s = s.After(d.of[e.Parent])
		}
		all := s.AppendDigests(nil, e.TokenIDs, int(e.BlockSize), nil)
		require.Len(t, all, len(e.BlockHashes)*s.DigestLen())
		if s.Event(all[:s.DigestLen()]) != e.BlockHashes[0] && d.scheme == "" {
			continue // the scheme of another run
		}
		if d.scheme == "" {
			d.scheme, d.of = fmt.Sprint(c), map[uint64][]byte{}
		}
		for i, h := range e.BlockHashes {
			digest := all[i*s.DigestLen():][:s.DigestLen()]
			require.Equal(t, s.Event(digest), h)
			d.of[h] = digest
			d.equal++
		}
		return
	}
	d.scheme = "none"
}

// TestLiveDynamo replays what Dynamo's mocker published, in the form of vLLM, of SGLang and of Dynamo's event plane. At
// each quiet moment the index and Dynamo's own router report the same depths.
func TestLiveDynamo(t *testing.T) {
	for _, tt := range []struct {
		name           string
		format         kvevent.Format
		block, queries int
	}{{"dynamo-mocker-b16", kvevent.VLLM, 16, 320}, {"dynamo-sglang-b16", kvevent.SGLang, 16, 240}, {"dynamo-vllm-b64", kvevent.VLLM, 64, 240},
		{"dynamo-plane-b16", kvevent.Dynamo, 16, 200}} {
		t.Run(tt.name, func(t *testing.T) {
			type query struct {
				Mark    int
				Tokens  []uint32
				Salt    string
				Overlap map[string]struct {
					Device int `json:"device_blocks"`
				}
			}
			queries := map[int][]query{}
			lines(t, func(line []byte) {
				var q query
				require.NoError(t, json.Unmarshal(line, &q))
				queries[q.Mark] = append(queries[q.Mark], q)
			}, tt.name, "truth.jsonl")
			x := index.New(tt.block, nil)
			d := kvevent.NewDecoder(tt.format, nil)
			streams := map[uint64]*index.Stream{}
			names := map[index.WorkerID]string{}
			type result struct{ got, want map[string]int }
			var results []result
			lines(t, func(line []byte) {
				var l struct {
					W      uint64
					Frames []string
					Mark   *int
				}
				require.NoError(t, json.Unmarshal(line, &l))
				if l.Mark != nil {
					for _, q := range queries[*l.Mark] {
						r := result{map[string]int{}, map[string]int{}}
						for _, m := range x.AppendMatches(nil, kvhash.Scheme{}.With("", q.Salt).AppendBlocks(nil, q.Tokens, tt.block, nil)) {
							r.got[names[m.Worker]] = int(m.Depth)
						}
						for w, o := range q.Overlap {
							if o.Device > 0 {
								r.want[w] = o.Device
							}
						}
						results = append(results, r)
					}
					return
				}
				var frames [][]byte
				for _, f := range l.Frames {
					b, err := hex.DecodeString(f)
					require.NoError(t, err)
					frames = append(frames, b)
				}
				batches, err := d.AppendFrames(nil, frames)
				require.NoError(t, err)
				for _, b := range batches {
					w, o := l.W, &index.StreamOptions{}
					if tt.format == kvevent.Dynamo {
						w, o = b.Worker, &index.StreamOptions{First: 1}
					}
					if streams[w] == nil {
						id := x.AddWorker(index.Key{Instance: strconv.FormatUint(w, 10)})
						names[id] = strconv.FormatUint(w, 10)
						streams[w] = x.NewStream(id, o)
					}
					streams[w].Add(b)
				}
			}, tt.name, "events.jsonl")
			require.Len(t, results, tt.queries)
			require.Len(t, streams, 3)
			for _, w := range x.AppendWorkers(nil) {
				require.Equal(t, index.Exact, w.State, w.Key)
			}
			if tt.format != kvevent.Dynamo { // workers have numbers, but the router's responses have IDs
				alias := map[string]string{} // a depth that only one worker has identifies it
				for _, r := range results {
					for w, n := range r.got {
						same := func(depths map[string]int) (ids []string) {
							for id, d := range depths {
								if d == n {
									ids = append(ids, id)
								}
							}
							return ids
						}
						if ids := same(r.want); len(ids) == 1 && len(same(r.got)) == 1 {
							alias[w] = ids[0]
						}
					}
				}
				require.Len(t, alias, 3)
				for i, r := range results {
					renamed := map[string]int{}
					for w, n := range r.got {
						renamed[alias[w]] = n
					}
					results[i].got = renamed
				}
			}
			hits := 0
			for _, r := range results {
				require.Equal(t, r.want, r.got)
				hits += len(r.want)
			}
			require.Greater(t, hits, tt.queries/2)
		})
	}
}
