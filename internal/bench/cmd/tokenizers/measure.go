// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/remote"
	"github.com/weft-go/weft/tokenizers"
)

// options holds the settings of a run and, at the end, its results.
type options struct {
	rounds int
	texts  []text
	hf     *remote.Proc // nil without node
	npm    string
	peers  string // the program, "" without
	rows   []row
	exact  []exactness
	idle   float64 // microseconds that a call of Hugging Face's encode takes with nothing to encode
}

// row is one measurement.
type row struct {
	Tok    string  `json:"tok"`
	Kind   string  `json:"kind"`  // byte-level, sentencepiece, wordpiece, unigram
	What   string  `json:"what"`  // encode, decode, load, stream, prefix
	Text   string  `json:"text"`  // or ""
	Cache  string  `json:"cache"` // cold or warm, of both sides; or ""
	With   string  `json:"with"`  // hf, a peer, or weft
	Unit   string  `json:"unit"`
	Ours   float64 `json:"ours"`
	Theirs float64 `json:"theirs"`
	Ratio  float64 `json:"ratio"` // how many times theirs is slower; for load ours over theirs
	Goal   float64 `json:"goal"`  // 0: none
	Allocs float64 `json:"allocs"`
	Met    bool    `json:"met"`
	Wrong  string  `json:"wrong,omitempty"` // why there is no time, or what a library gets wrong
}

// exactness is the number of golden vectors that a library encodes exactly.
type exactness struct {
	tok, with string
	right, of int
	note      string
}

// Limits on calls to other processes.
const (
	callLimit = 2 * time.Minute
	peerLimit = 20 * time.Second
	lineLimit = 5 * time.Second
)

// slice is the CPU time of one round of ours: about what one pass of Hugging Face's takes, so that both have the processor, with its
// caches, for as long.
const slice = 40 * time.Millisecond

// kindOf returns the kind of a tokenizer, which selects its goals.
func kindOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return "", err
	}
	var f struct {
		Model struct {
			Type         string
			ByteFallback bool   `json:"byte_fallback"`
			Suffix       string `json:"end_of_word_suffix"`
			Merges       []json.RawMessage
			Vocab        json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return "", err
	}
	switch m := &f.Model; {
	case m.Type == "BPE" && (m.ByteFallback || m.Suffix != ""): // BPE of characters: CLIP's too
		return "sentencepiece", nil
	case m.Type == "BPE" || m.Merges != nil:
		return "byte-level", nil
	case m.Type == "Unigram" || m.Vocab[0] == '[':
		return "unigram", nil
	}
	return "wordpiece", nil
}

// encodeGoal is the required speed of encoding relative to Hugging Face.
func encodeGoal(kind, text, cache string) float64 {
	switch {
	case kind == "sentencepiece":
		return 8
	case kind != "byte-level":
		return 3
	case cache == "warm":
		return 50
	case text == "prose":
		return 15
	}
	return 25
}

const (
	decodeGoal = 20
	loadGoal   = 0.4 // of qwen3
	prefixGoal = 100
	peerGoal   = 8
)

// peerNames are the libraries that internal/bench/peers has.
var peerNames = []string{"sugarme", "pkoukk", "tiktoken-go", "ollama", "go-huggingface"}

// family measures one tokenizer.
func (o *options) family(name, dir string, tok *tokenizers.Tokenizer) error {
	kind, err := kindOf(dir)
	if err != nil {
		return err
	}
	f := &family{o: o, name: name, dir: dir, kind: kind, tok: tok, series: make(map[string][]float64), wrong: make(map[string]string)}
	defer f.close()
	var off string
	if f.prefix, off = newPrefix(tok, o.texts[len(o.texts)-1].docs[0]); off != "" {
		fmt.Printf("%s: no prefix cache: %s\n", name, off)
	}
	if err := f.prepare(); err != nil {
		return err
	}
	for range o.rounds {
		if err := f.round(); err != nil {
			return err
		}
	}
	f.report()
	return nil
}

// family is one tokenizer under measurement. Series are numbers by name, one for each round.
type family struct {
	o               *options
	name, dir, kind string
	tok             *tokenizers.Tokenizer
	peers           map[string]*remote.Proc
	way             string // how Hugging Face is called: the fastest
	series          map[string][]float64
	wrong           map[string]string // text, or peer and text -> what differs
	ids             []uint32
	buf             []byte
	allocs          float64
	streamAllocs    float64
	prefix          func(dst []uint32, text string) []uint32 // nil without a prefix cache
	prefixAllocs    float64
}

func (f *family) close() {
	for _, p := range f.peers {
		p.Close()
	}
}

func (f *family) add(name string, v float64) { f.series[name] = append(f.series[name], v) }

func (f *family) file() string { return filepath.Join(f.dir, "tokenizer.json") }

// prepare loads everything, compares ids and finds the fastest way to call Hugging Face.
func (f *family) prepare() error {
	o := f.o
	if o.hf != nil {
		if _, err := o.hf.Call(callLimit, remote.Request{Op: "load", File: f.file()}); err != nil {
			return err
		}
		for _, t := range o.texts {
			if _, err := o.hf.Call(callLimit, remote.Request{Op: "text", Name: t.name, Docs: t.docs}); err != nil {
				return err
			}
			r, err := o.hf.Call(callLimit, remote.Request{Op: "ids", Docs: t.docs})
			if err != nil {
				return err
			}
			for i, d := range t.docs {
				if !slices.Equal(f.tok.AppendEncode(nil, d), r.IDs[i]) {
					f.wrong[t.name] = fmt.Sprintf("ids of document %d differ", i)
				}
			}
		}
		if o.idle == 0 {
			const calls = 300
			r, err := o.hf.Call(callLimit, remote.Request{Op: "idle", Reps: calls})
			if err != nil {
				return err
			}
			o.idle = r.CPU / calls
		}
		var cost [2]float64
		for range 3 {
			for i, way := range []string{"each", "batch"} {
				r, err := o.hf.Call(callLimit, remote.Request{Op: "encode", Name: "code", Way: way, Reps: 1})
				if err != nil {
					return err
				}
				if cost[i] == 0 || r.CPU < cost[i] {
					cost[i] = r.CPU
				}
			}
		}
		if f.way = "each"; cost[1] < cost[0] {
			f.way = "batch"
		}
	}
	if o.peers == "" {
		return nil
	}
	f.peers = make(map[string]*remote.Proc)
	golden, err := readGolden(f.dir)
	if err != nil {
		return err
	}
	for _, name := range peerNames {
		p, err := remote.Start(exec.Command(o.peers, name))
		if err != nil {
			return err
		}
		e := exactness{tok: f.name, with: name, of: len(golden)}
		if _, err := p.Call(peerLimit, remote.Request{Op: "load", File: f.file()}); err != nil {
			e.note = "does not load: " + err.Error()
			o.exact = append(o.exact, e)
			p.Close()
			continue
		}
		for _, t := range o.texts {
			if _, err := p.Call(peerLimit, remote.Request{Op: "text", Name: t.name, Docs: t.docs}); err != nil {
				return err
			}
			r, err := p.Call(peerLimit, remote.Request{Op: "ids", Docs: t.docs})
			if err != nil {
				f.wrong[name+" "+t.name] = err.Error()
				continue
			}
			for i, d := range t.docs {
				if !slices.Equal(f.tok.AppendEncode(nil, d), r.IDs[i]) {
					f.wrong[name+" "+t.name] = fmt.Sprintf("ids of document %d differ", i)
				}
			}
		}
		for _, g := range golden {
			r, err := p.Call(lineLimit, remote.Request{Op: "ids", Docs: []string{g.Text}})
			if err != nil {
				if e.note = err.Error(); errors.Is(err, remote.ErrTimeout) {
					e.note = "hangs"
				}
				p.Close()
				break
			}
			if r.IDs[0] != nil && slices.Equal(r.IDs[0], g.IDs) {
				e.right++
			}
		}
		o.exact = append(o.exact, e)
		if e.note == "" {
			f.peers[name] = p
		}
	}
	return nil
}

// restart replaces Hugging Face's process by a new one that has text t.
func (f *family) restart(t *text) (err error) {
	f.o.hf.Close()
	if f.o.hf, err = remote.StartHF(f.o.npm); err != nil {
		return err
	}
	_, err = f.o.hf.Call(callLimit, remote.Request{Op: "text", Name: t.name, Docs: t.docs})
	return err
}

// round runs one of each.
func (f *family) round() error {
	o := f.o
	for i := range o.texts {
		t := &o.texts[i]
		if o.hf != nil {
			// A tokenizer that was just loaded is cold; the next pass over the same text is warm. The process is new each time: else
			// it may free the tokenizer before this one while it is timed, which doubles the time of a cold pass.
			if err := f.restart(t); err != nil {
				return err
			}
			r, err := o.hf.Call(callLimit, remote.Request{Op: "load", File: f.file()})
			if err != nil {
				return err
			}
			f.add("hf load", r.CPU/1e3)
			for _, cache := range []string{"cold", "warm"} {
				r, err := o.hf.Call(callLimit, remote.Request{Op: "encode", Name: t.name, Way: f.way, Reps: 1})
				if err != nil {
					return err
				}
				f.add("hf "+t.name+" "+cache, r.CPU*1e3/float64(t.bytes))
			}
		}
		f.add("weft "+t.name+" cold", f.encode(t, true))
		f.add("weft "+t.name+" warm", f.encode(t, false))
		for _, name := range peerNames {
			p := f.peers[name]
			if p == nil {
				continue
			}
			r, err := p.Call(peerLimit, remote.Request{Op: "encode", Name: t.name, Reps: 1})
			if err != nil {
				delete(f.peers, name)
				continue
			}
			f.add(name+" "+t.name, r.CPU*1e3/float64(t.bytes))
		}
	}
	runtime.GC()
	began := bench.CPUTime()
	if _, err := tokenizers.Load(os.DirFS(f.dir), nil); err != nil {
		return err
	}
	f.add("weft load", float64(bench.CPUTime()-began)/1e6)
	code := &o.texts[0]
	if o.hf != nil {
		if err := f.restart(code); err != nil {
			return err
		}
		if _, err := o.hf.Call(callLimit, remote.Request{Op: "load", File: f.file()}); err != nil {
			return err
		}
		for _, way := range []string{"", "none"} {
			r, err := o.hf.Call(callLimit, remote.Request{Op: "decode", Name: code.name, Way: way, Reps: 1})
			if err != nil {
				return err
			}
			f.add("hf decode "+way, r.CPU*1e3/float64(r.Tokens))
		}
	}
	for _, name := range peerNames {
		if p := f.peers[name]; p != nil {
			if r, err := p.Call(peerLimit, remote.Request{Op: "decode", Name: code.name, Reps: 1}); err == nil && r.Tokens > 0 {
				f.add(name+" decode", r.CPU*1e3/float64(r.Tokens))
			}
		}
	}
	if f.prefix != nil {
		f.add("prefix", f.hit(&o.texts[len(o.texts)-1]))
	}
	whole, stream := f.decode(code)
	f.add("weft decode", whole)
	f.add("weft stream", stream)
	return nil
}

// encode returns the CPU time of ours in nanoseconds a byte. Cold passes begin with empty word caches; emptying them does not count.
func (f *family) encode(t *text, cold bool) float64 {
	runtime.GC()
	pass := func() {
		for _, d := range t.docs {
			f.ids = f.tok.AppendEncode(f.ids[:0], d)
		}
	}
	pass()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var spent time.Duration
	n := 0
	for ; spent < slice; n++ {
		if cold {
			f.tok.ResetCache()
		}
		began := bench.CPUTime()
		pass()
		spent += bench.CPUTime() - began
	}
	runtime.ReadMemStats(&after)
	if !cold {
		f.allocs = float64(after.Mallocs-before.Mallocs) / float64(n*len(t.docs))
	}
	return float64(spent) / float64(n*t.bytes)
}

// hit returns the CPU time in nanoseconds a byte of encoding a text whose prefixes are all known.
func (f *family) hit(t *text) float64 {
	pass := func() {
		for _, d := range t.docs {
			f.ids = f.prefix(f.ids[:0], d)
		}
	}
	pass()
	for _, d := range t.docs {
		if !slices.Equal(f.prefix(nil, d), f.tok.AppendEncode(nil, d)) {
			f.wrong["prefix"] = "ids differ"
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	began := bench.CPUTime()
	for ; bench.CPUTime()-began < slice; n++ {
		pass()
	}
	spent := bench.CPUTime() - began
	runtime.ReadMemStats(&after)
	f.prefixAllocs = float64(after.Mallocs-before.Mallocs) / float64(n*len(t.docs))
	return float64(spent) / float64(n*t.bytes)
}

// decode returns the CPU time of ours in nanoseconds a token, for all ids at once and for one after the other.
func (f *family) decode(t *text) (whole, stream float64) {
	var list [][]uint32
	tokens := 0
	for _, d := range t.docs {
		list = append(list, f.tok.AppendEncode(nil, d))
		tokens += len(list[len(list)-1])
	}
	timed := func(pass func()) float64 {
		runtime.GC()
		pass()
		n := 0
		began := bench.CPUTime()
		for ; bench.CPUTime()-began < slice; n++ {
			pass()
		}
		return float64(bench.CPUTime()-began) / float64(n*tokens)
	}
	whole = timed(func() {
		for _, ids := range list {
			f.buf = f.tok.AppendDecode(f.buf[:0], ids, true)
		}
	})
	s := f.tok.NewStream(true, nil)
	steps := func() {
		for _, ids := range list {
			for _, id := range ids {
				f.buf = s.Append(f.buf[:0], id)
			}
			f.buf = s.Finish(f.buf[:0])
		}
	}
	stream = timed(steps)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	steps()
	runtime.ReadMemStats(&after)
	f.streamAllocs = float64(after.Mallocs-before.Mallocs) / float64(tokens)
	return whole, stream
}

// vector is a line of golden.jsonl.
type vector struct {
	Text string   `json:"text"`
	IDs  []uint32 `json:"ids"`
}

func readGolden(dir string) (list []vector, err error) {
	file, err := os.Open(filepath.Join(dir, "golden.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, lines.Err()
}
