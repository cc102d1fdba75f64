// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"bytes"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/sigpack"
)

// This file implements the bridges: forms in which features of other APIs that this API lacks are encoded in its own
// fields, so that decoding restores them. Clients of this API never write these forms themselves.
//
//	a tool with free text       input_schema {"type":"object","properties":{"input":{"type":"string"}},"required":["input"],
//	                            "x-custom-format":FORMAT}; its calls have the input {"input":"…"}
//	arguments other than a      input {"x-raw-arguments":"…"}
//	  JSON object
//	reasoning that is a         a signature, or the data of redacted thinking if there is no text: "weft1c.", s for a
//	  summary or has an         summary or t for text, the length in bytes of the encrypted form, a dot, the encrypted form,
//	  encrypted form            the signature. Streams do the same with the contents of another API's stream

const (
	customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]`
	customFormat = "x-custom-format"
	rawArguments = "x-raw-arguments"
)

// appendCustomSchema appends the schema for a free-text tool with the given format, nil for plain text.
func appendCustomSchema(dst, format []byte) []byte {
	dst = append(dst, customSchema+`,"`+customFormat+`":`...)
	if format == nil {
		return append(dst, "null}"...)
	}
	return append(append(dst, format...), '}')
}

// bridged reports whether a schema was written by appendCustomSchema, even if it was respelled since.
func bridged(schema []byte) (format []byte, ok bool) {
	if !bytes.Contains(schema, []byte(customFormat)) {
		return nil, false
	}
	d, err := jsonscan.Scan(schema, jsonscan.Limits{Bytes: 1 << 30, Depth: 128, Values: 1 << 16})
	if err != nil {
		return nil, false
	}
	f := d.Root().Get(customFormat)
	if !f.IsNull() {
		format = f.Raw()
	}
	return format, f.Exists() && d.Root().Get("properties").Get("input").Exists()
}

// input reads the input of a call.
func (r reqReader) input(in jsonscan.Value, b *block.Block) {
	if in.IsNull() {
		b.Args = "{}"
		return
	}
	b.Args = in.RawStr()
	custom := r.custom[b.Name]
	if !custom && !strings.Contains(b.Args, rawArguments) || in.Kind() != jsonscan.Object {
		return
	}
	// The contents of an input are not indexed.
	d, err := jsonscan.Scan([]byte(b.Args), jsonscan.Limits{Bytes: 1 << 30, Depth: 128, Values: 1 << 16})
	if err != nil {
		return
	}
	only := d.Root().First()
	if text, ok := only.Str(nil); ok && !d.Root().Next(only).Exists() {
		switch {
		case only.KeyIs(rawArguments):
			b.Args = text
		case custom && only.KeyIs("input"):
			b.Args, b.Custom = text, true
		}
	}
}

// appendInput appends the input for a call.
func (w *reqWriter) appendInput(dst []byte, b *block.Block) []byte {
	wrap := func(key string) []byte {
		o := codec.Open(dst)
		o.Str(key, b.Args)
		return o.Close()
	}
	switch {
	case b.Custom:
		if !w.custom[b.Name] {
			w.Soft(b, "free text of a tool that is not declared became an argument")
		}
		return wrap("input")
	case codec.IsObject(b.Args) && !strings.Contains(b.Args, rawArguments):
		args := strings.Trim(b.Args, " \t\r\n")
		if args != b.Args { // too small a difference to show the model the bridge
			w.Soft(b, "white space around the arguments")
		}
		return append(dst, args...)
	case b.Args == "":
		w.Soft(b, "empty arguments became {}")
		return append(dst, "{}"...)
	}
	return wrap(rawArguments)
}

// needsPack reports whether reasoning has an encrypted form or is a summary, which this API has no fields for.
func needsPack(b *block.Block) bool { return !b.Redacted && (b.Encrypted != "" || b.Summary) }

// packed returns the signature of reasoning with the parts that this API has no fields for.
func packed(b *block.Block) string {
	kind := sigpack.Text
	if b.Summary {
		kind = sigpack.Summary
	}
	return string(sigpack.Append(nil, kind, b.Encrypted, b.Signature))
}

// unpack restores the parts of reasoning from s, if it is a packed signature.
func unpack(b *block.Block, s string) {
	if kind, encrypted, signature, ok := sigpack.Open(s); ok {
		b.Summary, b.Redacted = kind == sigpack.Summary, kind == sigpack.Withheld
		b.Encrypted, b.Signature = encrypted, signature
	}
}
