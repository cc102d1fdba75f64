// SPDX-License-Identifier: Apache-2.0

// Package codec implements what the request dialects of chat, completions, responses and messages share: a reader of
// validated JSON with one sticky error, parameters, inline media, the difference between two blocks, and insertion into
// content that may be a string or an array.
package codec

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// Reader reads fields of a request. It keeps the first error, which Err returns; later calls are safe and return zero
// values or the remaining data. Absent and null values are equivalent and not errors.
type Reader struct {
	arena  jsonscan.Arena
	lim    block.Limits
	blocks int
	err    *block.Error
	past   past

	origins []seam.Origin // free memory
	turns   int           // number of turns that were read and not taken over
}

// NewReader returns a reader for the document of root. past, which may be nil, is an earlier request from which the
// document has copies.
func NewReader(root jsonscan.Value, lim block.Limits, earlier *Past) *Reader {
	r := &Reader{lim: lim}
	if earlier == nil || !r.from(earlier, root.Doc()) {
		r.arena.Reserve(root.Doc().Escaped())
	}
	if root.Kind() != jsonscan.Object {
		r.Want(root, "an object")
	}
	return r
}

// Err returns the first error.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Want records an error: v is not a value of the type described by what.
func (r *Reader) Want(v jsonscan.Value, what string) {
	r.fault(v, what+" was expected, not "+v.Kind().String())
}

func (r *Reader) fault(v jsonscan.Value, msg string) {
	if r.err == nil {
		off, _ := v.Span()
		r.err = &block.Error{Kind: block.WrongType, Path: v.Path(), Offset: int64(off), Msg: msg}
	}
}

// Missing records an error: obj lacks the field name.
func (r *Reader) Missing(obj jsonscan.Value, name, what string) {
	if r.err == nil {
		off, _ := obj.Span()
		path := jsonscan.AppendPathKey([]byte(obj.Path()), []byte(name))
		r.err = &block.Error{Kind: block.WrongType, Path: string(path), Offset: int64(off), Msg: what + " is required"}
	}
}

// Str returns a string.
func (r *Reader) Str(v jsonscan.Value) string {
	s, ok := v.Str(&r.arena)
	if !ok && !v.IsNull() {
		r.Want(v, "a string")
	}
	return s
}

// Hint returns a string that is only a hint: it affects neither the prompt nor the form of the response. A value of
// another type is treated as absent; [intent.Read] reports it.
func (r *Reader) Hint(v jsonscan.Value) string {
	s, _ := v.Str(&r.arena)
	return s
}

// Bool returns a boolean.
func (r *Reader) Bool(v jsonscan.Value) bool {
	b, ok := v.Bool()
	if !ok && !v.IsNull() {
		r.Want(v, "a boolean")
	}
	return b
}

// BoolPtr returns a boolean, or nil if absent.
func (r *Reader) BoolPtr(v jsonscan.Value) *bool {
	if v.IsNull() {
		return nil
	}
	b := r.Bool(v)
	return &b
}

// Int returns an integer, or nil if absent.
func (r *Reader) Int(v jsonscan.Value) *int64 {
	if v.IsNull() {
		return nil
	}
	n, ok := v.Int()
	switch {
	case !ok && v.Kind() == jsonscan.Number:
		r.fault(v, "the number is not a 64-bit integer")
	case !ok:
		r.Want(v, "an integer")
	}
	return &n
}

// Float returns a number, or nil if absent.
func (r *Reader) Float(v jsonscan.Value) *float64 {
	if v.IsNull() {
		return nil
	}
	f, ok := v.Float()
	switch {
	case !ok && v.Kind() == jsonscan.Number:
		r.fault(v, "the number is out of range")
	case !ok:
		r.Want(v, "a number")
	}
	return &f
}

// Object returns v if it is an object. Otherwise the result does not exist.
func (r *Reader) Object(v jsonscan.Value) jsonscan.Value {
	return r.only(v, jsonscan.Object, "an object")
}

// List returns v if it is an array. Otherwise the result does not exist.
func (r *Reader) List(v jsonscan.Value) jsonscan.Value {
	return r.only(v, jsonscan.Array, "an array")
}

func (r *Reader) only(v jsonscan.Value, k jsonscan.Kind, what string) jsonscan.Value {
	if v.Kind() == k {
		return v
	}
	if !v.IsNull() {
		r.Want(v, what)
	}
	return jsonscan.Value{}
}

// Strs returns a string or an array of strings as a slice.
func (r *Reader) Strs(v jsonscan.Value) []string {
	switch v.Kind() {
	case jsonscan.Absent, jsonscan.Null:
		return nil
	case jsonscan.String:
		return []string{r.Str(v)}
	case jsonscan.Array:
		list := make([]string, 0, v.Len())
		for e := v.First(); e.Exists(); e = v.Next(e) {
			if e.Kind() == jsonscan.String {
				list = append(list, r.Str(e))
			} else {
				r.Want(e, "a string")
			}
		}
		return list
	}
	r.Want(v, "a string or an array of strings")
	return nil
}

// Raw returns the JSON of v, or nil if absent or null.
func (r *Reader) Raw(v jsonscan.Value) []byte {
	if v.IsNull() {
		return nil
	}
	return v.Raw()
}

// Count counts n blocks toward the limit.
func (r *Reader) Count(v jsonscan.Value, n int) bool {
	if r.blocks += n; r.blocks > r.lim.Blocks {
		r.limit(v, "too many blocks", "blocks", r.lim.Blocks)
		return false
	}
	return true
}

// Blocks returns a slice with capacity for n blocks and counts them toward the limit. Each has memory of its own, because a later
// request may keep one and not the others.
func (r *Reader) Blocks(v jsonscan.Value, n int) []block.Block {
	if !r.Count(v, n) {
		return nil
	}
	return make([]block.Block, 0, n)
}

// Tools returns a slice with capacity for n tools.
func (r *Reader) Tools(v jsonscan.Value, n int) []block.Tool {
	if n > r.lim.Tools {
		r.limit(v, "too many tools", "tools", r.lim.Tools)
		return nil
	}
	return make([]block.Tool, 0, n)
}

func (r *Reader) limit(v jsonscan.Value, msg, limit string, maximum int) {
	if r.err == nil {
		off, _ := v.Span()
		r.err = &block.Error{
			Kind: block.LimitPassed, Path: v.Path(), Offset: int64(off), Msg: msg, Limit: limit, Max: int64(maximum),
		}
	}
}

// Content reads content that is a string, an array of blocks, or absent. one reads one block.
func (r *Reader) Content(v jsonscan.Value, one func(jsonscan.Value) block.Block) []block.Block {
	switch v.Kind() {
	case jsonscan.Absent, jsonscan.Null:
		return nil
	case jsonscan.String:
		list := r.Blocks(v, 1)
		return append(list, block.Block{Kind: block.Text, Text: r.Str(v), At: Pending(v)})
	case jsonscan.Array:
		list := r.Blocks(v, v.Len())
		for e := v.First(); e.Exists() && r.err == nil; e = v.Next(e) {
			if e.Kind() == jsonscan.String { // sent by some clients
				list = append(list, block.Block{Kind: block.Text, Text: r.Str(e), At: Pending(e)})
				continue
			}
			if e.Kind() != jsonscan.Object {
				r.Want(e, "an object")
				break
			}
			list = append(list, one(e))
		}
		return list
	}
	r.Want(v, "a string or an array")
	return nil
}

// FormOf returns the form of content.
func FormOf(v jsonscan.Value) block.Form {
	switch v.Kind() {
	case jsonscan.String:
		return FormString
	case jsonscan.Array:
		return FormList
	}
	return 0
}

// Cache reads a cache breakpoint: cache_control or prompt_cache_breakpoint. It is a hint: parts of the wrong type are
// treated as absent, and wire.Breakpoints reports them.
func (r *Reader) Cache(v jsonscan.Value) *block.Cache {
	if c := v.Get("cache_control"); c.Kind() == jsonscan.Object {
		return CacheOf(c, &r.arena)
	}
	return CacheOf(v.Get("prompt_cache_breakpoint"), &r.arena)
}

// Inline splits a data: URL into its type and base64 text. ok is false for other URLs and for data that is not base64.
func Inline(url string) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", false
	}
	mime, ok = strings.CutSuffix(head, ";base64")
	if i := strings.IndexByte(mime, ';'); i >= 0 {
		mime = mime[:i]
	}
	return mime, data, ok
}

// MediaURL returns the media for a URL, which may be a data: URL.
func MediaURL(url string) *block.Media {
	if mime, data, ok := Inline(url); ok {
		return &block.Media{MIME: mime, Data: data}
	}
	return &block.Media{URL: url}
}

// URLOf returns the URL of media, with inline data as a data: URL, or "" if it has neither.
func URLOf(m *block.Media) string {
	if m.Data == "" {
		return m.URL
	}
	mime := m.MIME
	if mime == "" {
		mime = "application/octet-stream"
	}
	return "data:" + mime + ";base64," + m.Data
}
