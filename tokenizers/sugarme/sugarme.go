// SPDX-License-Identifier: Apache-2.0

package sugarme

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers"
)

// Options specifies whether and how the engine may be used. Nil options refuse everything.
type Options struct {
	// Enable must be true: the caller accepts that this engine is not exact in general.
	Enable bool
	// Vectors are texts with their correct IDs, without added special tokens, from Hugging Face's own tokenizer. All must
	// match. They should contain every kind of text that will be encoded, because they prove nothing about others.
	Vectors map[string][]uint32
}

const (
	maxText  = 16 << 10        // bytes of a text to encode
	maxTime  = 2 * time.Second // for encoding a text
	maxFile  = 64 << 20        // bytes of tokenizer.json
	loadTime = time.Minute

	file = "tokenizer.json"
)

// A Tokenizer converts text to IDs. It is safe for concurrent use by multiple goroutines; calls run one at a time.
type Tokenizer struct {
	engine  engine
	running chan struct{} // holds one element while the engine works
	maxText int
	maxTime time.Duration
	probes  int // texts compared with the native loader
	vectors int // vectors that matched
}

// engine is the part of github.com/sugarme/tokenizer that the adapter uses.
type engine interface {
	encode(text string) ([]int, error)
}

// Load reads tokenizer.json from the root of fsys, at most 64 MiB, and checks it as the package comment describes. It
// takes about as long as encoding all vectors.
func Load(fsys fs.FS, options *Options) (*Tokenizer, error) {
	var opt Options
	if options != nil {
		opt = *options
	}
	if !opt.Enable {
		return nil, fail("load", ErrUnverified, "the adapter is off: set Options.Enable to use it")
	}
	data, err := read(fsys)
	if err != nil {
		return nil, err
	}
	added, err := survey(data)
	if err != nil {
		return nil, err
	}
	native, err := tokenizers.Load(fsys, nil)
	if err != nil {
		if !errors.Is(err, tokenizers.ErrUnsupported) && !errors.Is(err, tokenizers.ErrLimit) {
			return nil, fail("load", err, "") // a damaged file is damaged for everyone
		}
		native = nil
	}
	if native == nil && len(opt.Vectors) == 0 {
		return nil, fail("check", ErrUnverified, "give vectors (%v)", err)
	}
	t := &Tokenizer{running: make(chan struct{}, 1), maxText: maxText, maxTime: maxTime}
	if err := t.fenced("load", loadTime, func() error {
		e, err := open(data)
		t.engine = e
		return err
	}); err != nil {
		return nil, err
	}
	if err := t.check(native, opt.Vectors, probes(added)); err != nil {
		return nil, err
	}
	return t, nil
}

func read(fsys fs.FS) ([]byte, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return nil, fail("load", err, file)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fail("load", err, file)
	}
	if len(data) > maxFile {
		return nil, fail("load", tokenizers.ErrLimit, "%s is longer than %d bytes", file, maxFile)
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
		return nil, fail("load", tokenizers.ErrFormat, "%s: %v", file, err)
	}
	refuse := func(what string) ([]string, error) {
		return nil, fail("load", tokenizers.ErrUnsupported, "%s", what)
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

// check compares the engine's ids with the native loader's and the vectors.
func (t *Tokenizer) check(native *tokenizers.Tokenizer, vectors map[string][]uint32, texts []string) error {
	compare := func(text string, want []uint32, source string) error {
		got, err := t.AppendEncode(nil, text)
		if err != nil {
			return fmt.Errorf("%w (encoding %.60q)", err, text)
		}
		if !slices.Equal(got, want) {
			return fail("check", ErrDisagrees, "%.60q: got %s, %s returned %s", text, short(got), source, short(want))
		}
		return nil
	}
	for _, s := range texts {
		if len(s) > t.maxText {
			continue
		}
		// Without a native tokenizer, the engine must still return valid and equal results twice, because it caches words.
		want, err := t.AppendEncode(nil, s)
		if err != nil {
			return fmt.Errorf("%w (encoding %.60q)", err, s)
		}
		source := "an earlier call"
		if native != nil {
			want, source = native.AppendEncode(nil, s), "the native tokenizer"
			t.probes++
		}
		if err := compare(s, want, source); err != nil {
			return err
		}
	}
	for _, text := range slices.Sorted(maps.Keys(vectors)) {
		if err := compare(text, vectors[text], "the vector"); err != nil {
			return err
		}
		t.vectors++
	}
	return nil
}

func short(ids []uint32) string {
	if len(ids) > 8 {
		return fmt.Sprintf("%d and %d more", ids[:8], len(ids)-8)
	}
	return fmt.Sprint(ids)
}

// Verified returns what the check on load compared: texts with the native loader, and vectors.
func (t *Tokenizer) Verified() (probes, vectors int) { return t.probes, t.vectors }

// AppendEncode appends the IDs of text to dst, without added special tokens. On an error it returns dst unchanged. A
// text over 16 KiB wraps [tokenizers.ErrLimit], one that is not UTF-8 [tokenizers.ErrFormat], and a call that
// exceeds 2 seconds [context.DeadlineExceeded].
func (t *Tokenizer) AppendEncode(dst []uint32, text string) ([]uint32, error) {
	if len(text) > t.maxText {
		return dst, fail("encode", tokenizers.ErrLimit, "%d bytes, the limit is %d", len(text), t.maxText)
	}
	if !utf8.ValidString(text) {
		return dst, fail("encode", tokenizers.ErrFormat, "the text is not UTF-8")
	}
	if text == "" {
		return dst, nil
	}
	var ids []int
	if err := t.fenced("encode", t.maxTime, func() (err error) {
		// Written by the engine's goroutine, and not read after a timeout.
		ids, err = t.engine.encode(text)
		return err
	}); err != nil {
		return dst, err
	}
	n := len(dst)
	for _, id := range ids {
		if id < 0 || int64(id) > math.MaxUint32 {
			return dst[:n], fail("encode", ErrEngine, "id %d", id)
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
		return fail(op, context.DeadlineExceeded, "an earlier call has not ended after %v", d)
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
		return fail(op, context.DeadlineExceeded, "not done after %v", d)
	}
}

// shielded runs f and converts a panic or log.Fatal in it to an error.
func shielded(op string, f func() error) (err error) {
	release := muzzle()
	defer release()
	defer func() {
		if r := recover(); r != nil {
			err = fail(op, ErrEngine, "it panicked: %.300v", r)
		}
	}()
	if err := f(); err != nil {
		if errors.Is(err, ErrEngine) || errors.Is(err, tokenizers.ErrUnsupported) {
			return err // reported already
		}
		return fail(op, ErrEngine, "%.300v", err)
	}
	return nil
}
