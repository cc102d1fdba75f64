// SPDX-License-Identifier: Apache-2.0

package sugarme

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers"
)

// Options say whether and how the engine may be used. The zero value refuses everything.
type Options struct {
	// Enable must be true: the caller knows that this engine is not exact in general.
	Enable bool
	// Vectors are texts with the ids that are right for them, from Hugging Face's own tokenizer. All must match.
	// They prove what they cover and nothing else: they should hold every kind of text that is going to come.
	Vectors []Vector
	// Golden holds more vectors, one JSON object with the fields text and ids in a line; other fields are
	// ignored. It is read once.
	Golden io.Reader
	// Unverified accepts a file that neither the native loader nor a vector can vouch for.
	Unverified bool
	// MaxText is the longest text in bytes. 0 means 16384.
	MaxText int
	// MaxTime is how long one encoding may take. 0 means 2 seconds.
	MaxTime time.Duration
}

// Vector is a text and its ids, without those that a frame would add.
type Vector struct {
	Text string   `json:"text"`
	IDs  []uint32 `json:"ids"`
}

// Proof says what the check on load compared.
type Proof struct {
	Native  bool // the native loader takes the file too and agrees on every probe
	Probes  int  // texts compared with it
	Vectors int  // vectors that matched
}

const (
	maxText   = 16 << 10
	maxTime   = 2 * time.Second
	maxFile   = 64 << 20 // bytes of tokenizer.json
	maxGolden = 256 << 20
	loadTime  = time.Minute

	file = "tokenizer.json"
)

// Tokenizer turns text into ids. It is safe for concurrent use; calls run one at a time. Make one with [Load]
// or [LoadFS].
type Tokenizer struct {
	engine  engine
	running chan struct{} // holds one element while the engine works
	maxText int
	maxTime time.Duration
	proof   Proof
}

// engine is what the adapter needs of github.com/sugarme/tokenizer.
type engine interface {
	encode(text string) ([]int, error)
}

// Load reads tokenizer.json in directory dir. See [LoadFS].
func Load(dir string, opt Options) (*Tokenizer, error) { return LoadFS(os.DirFS(dir), opt) }

// LoadFS reads tokenizer.json from the root of fsys, at most 64 MiB, and checks it as the package comment says.
// Errors are [*Error]. It takes about as long as encoding all vectors.
func LoadFS(fsys fs.FS, opt Options) (*Tokenizer, error) {
	if !opt.Enable {
		return nil, &Error{Op: "load", Reason: "set Options.Enable to use it", Err: ErrOff}
	}
	data, err := read(fsys)
	if err != nil {
		return nil, err
	}
	added, err := survey(data)
	if err != nil {
		return nil, err
	}
	vectors := opt.Vectors
	if opt.Golden != nil {
		more, err := readVectors(opt.Golden)
		if err != nil {
			return nil, err
		}
		vectors = slices.Concat(vectors, more)
	}
	native, err := tokenizers.LoadFS(fsys)
	if err != nil {
		if !errors.Is(err, tokenizers.ErrUnsupported) && !errors.Is(err, tokenizers.ErrLimit) {
			return nil, &Error{Op: "load", Err: err} // a damaged file is damaged for everyone
		}
		native = nil
	}
	if native == nil && len(vectors) == 0 && !opt.Unverified {
		return nil, &Error{Op: "check", Reason: fmt.Sprintf("give vectors or set Options.Unverified (%v)", err), Err: ErrUnverified}
	}
	t := &Tokenizer{running: make(chan struct{}, 1), maxText: opt.MaxText, maxTime: opt.MaxTime}
	if t.maxText <= 0 {
		t.maxText = maxText
	}
	if t.maxTime <= 0 {
		t.maxTime = maxTime
	}
	if err := t.fenced("load", loadTime, func() error {
		e, err := open(data)
		t.engine = e
		return err
	}); err != nil {
		return nil, err
	}
	if err := t.check(native, vectors, probes(added)); err != nil {
		return nil, err
	}
	return t, nil
}

func read(fsys fs.FS) ([]byte, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return nil, &Error{Op: "load", Reason: file, Err: err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &Error{Op: "load", Reason: file, Err: err}
	}
	if len(data) > maxFile {
		return nil, &Error{Op: "load", Reason: fmt.Sprintf("%s is longer than %d bytes", file, maxFile), Err: ErrLimit}
	}
	return data, nil
}

// survey refuses what the engine is known to get wrong silently and returns the added tokens.
func survey(data []byte) (added []string, err error) {
	var v struct {
		Truncation, Padding json.RawMessage
		AddedTokens         []struct{ Content string } `json:"added_tokens"`
		Model               struct {
			Type         string
			UnkToken     *string         `json:"unk_token"`
			ByteFallback bool            `json:"byte_fallback"`
			IgnoreMerges bool            `json:"ignore_merges"`
			Vocab        json.RawMessage `json:"vocab"`
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, &Error{Op: "load", Reason: fmt.Sprintf("%s: %v", file, err), Err: tokenizers.ErrFormat}
	}
	refuse := func(what string) ([]string, error) {
		return nil, &Error{Op: "load", Reason: what, Err: ErrUnsupported}
	}
	for _, part := range []json.RawMessage{v.Truncation, v.Padding} {
		if len(part) > 0 && string(part) != "null" {
			return refuse("truncation or padding")
		}
	}
	switch m := v.Model; {
	case m.ByteFallback:
		return refuse("byte_fallback, which the engine ignores")
	case m.IgnoreMerges:
		return refuse("ignore_merges, which the engine ignores")
	case m.Type == "WordLevel":
		// Without the token, the engine prints every unknown word and fails.
		var vocab map[string]json.RawMessage
		if err := json.Unmarshal(m.Vocab, &vocab); err != nil || m.UnkToken == nil {
			return refuse("a WordLevel model without unk_token")
		}
		if _, ok := vocab[*m.UnkToken]; !ok {
			return refuse(fmt.Sprintf("unk_token %q, which is not in the vocabulary", *m.UnkToken))
		}
	}
	for _, a := range v.AddedTokens {
		added = append(added, a.Content)
	}
	return added, nil
}

// readVectors reads lines of JSON.
func readVectors(r io.Reader) ([]Vector, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxGolden+1))
	if err != nil {
		return nil, &Error{Op: "check", Reason: "reading vectors", Err: err}
	}
	if len(data) > maxGolden {
		return nil, &Error{Op: "check", Reason: fmt.Sprintf("vectors are longer than %d bytes", maxGolden), Err: ErrLimit}
	}
	var out []Vector
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v struct {
			Text *string
			IDs  *[]uint32
		}
		if err := json.Unmarshal(line, &v); err != nil || v.Text == nil || v.IDs == nil {
			return nil, &Error{Op: "check", Reason: fmt.Sprintf("line %d of the vectors has no text with ids", n), Err: ErrFormat}
		}
		out = append(out, Vector{*v.Text, *v.IDs})
	}
	return out, nil
}

// check compares the engine with all that is known to be right.
func (t *Tokenizer) check(native *tokenizers.Tokenizer, vectors []Vector, texts []string) error {
	compare := func(text string, want []uint32, source string) error {
		got, err := t.AppendEncode(nil, text)
		if err != nil {
			e := err.(*Error)
			return &Error{Op: "check", Reason: fmt.Sprintf("%.60q: %s", text, e.Reason), Err: e.Err}
		}
		if !slices.Equal(got, want) {
			return &Error{Op: "check", Reason: fmt.Sprintf("%.60q gives %s, %s says %s", text, short(got), source, short(want)), Err: ErrDisagrees}
		}
		return nil
	}
	for _, s := range texts {
		if len(s) > t.maxText {
			continue
		}
		// Without a judge a probe still has to pass the fence, twice alike: the engine caches words.
		want, err := t.AppendEncode(nil, s)
		if err != nil {
			e := err.(*Error)
			return &Error{Op: "check", Reason: fmt.Sprintf("%.60q: %s", s, e.Reason), Err: e.Err}
		}
		source := "it said before"
		if native != nil {
			want, source = native.AppendEncode(nil, s), "the native tokenizer"
			t.proof.Probes++
		}
		if err := compare(s, want, source); err != nil {
			return err
		}
	}
	t.proof.Native = native != nil
	for _, v := range vectors {
		if err := compare(v.Text, v.IDs, "the vector"); err != nil {
			return err
		}
		t.proof.Vectors++
	}
	return nil
}

func short(ids []uint32) string {
	if len(ids) > 8 {
		return fmt.Sprintf("%d and %d more", ids[:8], len(ids)-8)
	}
	return fmt.Sprint(ids)
}

// Proof returns what the check on load compared. Its zero value means that nothing proves the ids right.
func (t *Tokenizer) Proof() Proof { return t.proof }

// AppendEncode appends the ids of text to dst, without a frame. On an error it returns dst as it was. Errors are
// [*Error].
func (t *Tokenizer) AppendEncode(dst []uint32, text string) ([]uint32, error) {
	if len(text) > t.maxText {
		return dst, &Error{Op: "encode", Reason: fmt.Sprintf("%d bytes, the limit is %d", len(text), t.maxText), Err: ErrLimit}
	}
	if !utf8.ValidString(text) {
		return dst, &Error{Op: "encode", Err: ErrText}
	}
	if text == "" {
		return dst, nil
	}
	var ids []int
	if err := t.fenced("encode", t.maxTime, func() (err error) {
		// Written by the engine's goroutine: nobody reads it after the time is over.
		ids, err = t.engine.encode(text)
		return err
	}); err != nil {
		return dst, err
	}
	n := len(dst)
	for _, id := range ids {
		if id < 0 || int64(id) > math.MaxUint32 {
			return dst[:n], &Error{Op: "encode", Reason: fmt.Sprintf("id %d", id), Err: ErrEngine}
		}
		dst = append(dst, uint32(id))
	}
	return dst, nil
}

// fenced runs f, which calls the engine, alone and within d.
func (t *Tokenizer) fenced(op string, d time.Duration, f func() error) error {
	clock := time.NewTimer(d)
	defer clock.Stop()
	select {
	case t.running <- struct{}{}:
	case <-clock.C:
		return &Error{Op: op, Reason: fmt.Sprintf("an earlier call has not ended after %v", d), Err: ErrTime}
	}
	done := make(chan error, 1)
	go func() {
		err := shielded(op, f)
		<-t.running
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-clock.C:
		return &Error{Op: op, Reason: fmt.Sprintf("not done after %v", d), Err: ErrTime}
	}
}

// shielded runs f and turns whatever happens in it into an error.
func shielded(op string, f func() error) (err error) {
	release := muzzle()
	defer release()
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Op: op, Reason: fmt.Sprintf("it panicked: %.300v", r), Err: ErrEngine}
		}
	}()
	if err := f(); err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			return e
		}
		return &Error{Op: op, Reason: fmt.Sprintf("%.300v", err), Err: ErrEngine}
	}
	return nil
}
