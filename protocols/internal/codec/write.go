// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Obj appends fields to an object. It writes the commas. The zero Obj is ready for Open.
type Obj struct {
	Buf   []byte
	comma bool
}

// Lossy handles contents that the target API cannot express. If Lose is set, it is called for each loss. Otherwise Err
// is the first loss that matters.
type Lossy struct {
	Strict bool // unmodeled blocks of the encoder's own API are written unmodified
	Lose   LossFunc
	Err    error
}

// Cannot records that b, or the part of it that why names, cannot be expressed.
func (l *Lossy) Cannot(b *block.Block, why string) {
	if l.Lose == nil && l.Err == nil {
		l.Err = Unsupported(why)
	}
	l.Soft(b, why)
}

// Soft is Cannot for a loss that is not a reason to refuse an edit.
func (l *Lossy) Soft(b *block.Block, why string) {
	if l.Lose != nil {
		l.Lose(b.At.Path(), why)
	}
}

// Patched adds the parts of b that its fields do not hold to dst[from:], its encoding, if the request is of this API.
func (l *Lossy) Patched(dst []byte, from int, b *block.Block) []byte {
	if l.Strict && len(dst) > from {
		return access.Patch(b, dst, from)
	}
	return dst
}

// CallName returns the name of a called tool where tools have no namespaces: the name that the model knows. The
// namespace is recorded as a loss.
func (l *Lossy) CallName(b *block.Block, tools []block.Tool) string {
	if b.Namespace == "" {
		return b.Name
	}
	l.Soft(b, "the namespace of a call")
	for i := range tools {
		if t := &tools[i]; t.Namespace == b.Namespace && t.Name == b.Name {
			return t.ModelName
		}
	}
	return b.Name
}

// Breakpoint writes a cache breakpoint in the form of the OpenAI APIs, which have neither a time to live nor a scope
// there.
func (l *Lossy) Breakpoint(o *Obj, b *block.Block) {
	if b.Cache == nil {
		return
	}
	if b.Cache.TTL != "" {
		l.Soft(b, "the time to live of a cache breakpoint")
	}
	if b.Cache.Scope != "" {
		l.Soft(b, "the scope of a cache breakpoint")
	}
	mode := Open(nil)
	mode.Str("mode", "explicit")
	o.Raw("prompt_cache_breakpoint", mode.Close())
}

// NoBreakpoint records the loss of a cache breakpoint on a block that cannot have one in the OpenAI APIs.
func (l *Lossy) NoBreakpoint(b *block.Block) {
	if b.Cache != nil {
		l.Soft(b, "a cache breakpoint")
	}
}

// Inside returns the content of a tool result. A cache breakpoint after the result moves to its last part, because the
// OpenAI APIs have breakpoints on parts only.
func (l *Lossy) Inside(b *block.Block) []block.Block {
	if b.Cache == nil || len(b.Content) == 0 {
		l.NoBreakpoint(b)
		return b.Content
	}
	l.Soft(b, "the position of a cache breakpoint, now on the last part")
	list := slices.Clone(b.Content)
	list[len(list)-1].Cache = b.Cache
	return list
}

// AppendList appends an array of the values that write appends for the blocks. Blocks for which it appends nothing are
// omitted.
func AppendList(dst []byte, list []block.Block, write func(dst []byte, b *block.Block) []byte) []byte {
	dst = append(dst, '[')
	for i, first := 0, len(dst); i < len(list); i++ {
		at := len(dst)
		if at > first {
			dst = append(dst, ',')
		}
		from := len(dst)
		if dst = write(dst, &list[i]); len(dst) == from {
			dst = dst[:at]
		}
	}
	return append(dst, ']')
}

// AppendContent appends a single plain text as a string and anything else as AppendList does. form may require an
// array.
func AppendContent(dst []byte, list []block.Block, form block.Form, write func(dst []byte, b *block.Block) []byte) []byte {
	if len(list) == 1 && list[0].Kind == block.Text && list[0].Cache == nil && form&FormList == 0 {
		return jsonscan.AppendString(dst, list[0].Text)
	}
	return AppendList(dst, list, write)
}

// Open starts an object after dst.
func Open(dst []byte) Obj { return Obj{Buf: append(dst, '{')} }

// Close ends the object and returns the buffer.
func (o *Obj) Close() []byte { return append(o.Buf, '}') }

// Key starts a field; the caller appends its value to Buf. The name must not need escapes.
func (o *Obj) Key(name string) {
	if o.comma {
		o.Buf = append(o.Buf, ',')
	}
	o.comma = true
	o.Buf = append(o.Buf, '"')
	o.Buf = append(o.Buf, name...)
	o.Buf = append(o.Buf, '"', ':')
}

// Str adds a string.
func (o *Obj) Str(name, s string) {
	o.Key(name)
	o.Buf = jsonscan.AppendString(o.Buf, s)
}

// OptStr adds a string unless it is empty.
func (o *Obj) OptStr(name, s string) {
	if s != "" {
		o.Str(name, s)
	}
}

// Raw adds a JSON value.
func (o *Obj) Raw(name string, raw []byte) {
	o.Key(name)
	o.Buf = append(o.Buf, raw...)
}

// OptRaw adds a JSON value unless it is empty.
func (o *Obj) OptRaw(name string, raw []byte) {
	if len(raw) > 0 {
		o.Raw(name, raw)
	}
}

// Tools adds the tools that write can express, if there are any.
func (o *Obj) Tools(tools []block.Tool, write func(dst []byte, t *block.Tool, lose LossFunc) []byte, lose LossFunc) {
	var list [][]byte
	for i := range tools {
		if raw := write(nil, &tools[i], lose); len(raw) > 0 {
			list = append(list, raw)
		}
	}
	if len(list) > 0 {
		o.Raw("tools", Array(list))
	}
}

// Bool adds a boolean.
func (o *Obj) Bool(name string, b bool) {
	o.Key(name)
	o.Buf = jsonscan.AppendBool(o.Buf, b)
}

// Members collects top-level fields.
type Members []Member

// Add appends a field with raw JSON.
func (m *Members) Add(key, also string, raw []byte) {
	*m = append(*m, Member{Key: key, Also: also, Value: raw})
}

// Str appends a string unless it is empty.
func (m *Members) Str(key, s string) {
	if s != "" {
		m.Add(key, "", Str(s))
	}
}

// Int appends an integer unless it is nil.
func (m *Members) Int(key, also string, n *int64) {
	if n != nil {
		m.Add(key, also, Int(*n))
	}
}

// Float appends a number unless it is nil.
func (m *Members) Float(key string, f *float64) {
	if f != nil {
		m.Add(key, "", jsonscan.AppendFloat(nil, *f))
	}
}

// True appends true if b is true.
func (m *Members) True(key string, b bool) {
	if b {
		m.Add(key, "", []byte("true"))
	}
}

// Strs appends an array of strings unless it is empty.
func (m *Members) Strs(key string, list []string) {
	if len(list) > 0 {
		raws := make([][]byte, len(list))
		for i, s := range list {
			raws[i] = Str(s)
		}
		m.Add(key, "", Array(raws))
	}
}

// Opt is a parameter that the API lacks, and whether the request sets it.
type Opt struct {
	Set  bool
	Name string
}

// LoseAll records the options that are set.
func LoseAll(lose LossFunc, why string, list ...Opt) {
	for _, o := range list {
		if o.Set {
			lose(o.Name, why+": "+o.Name)
		}
	}
}

// IsObject reports whether text is one valid JSON object within the default depth limit.
func IsObject(text string) bool {
	c := scanners.Get().(*jsonscan.Scanner)
	is := ScanObject(c, text)
	c.Trim(1 << 12)
	scanners.Put(c)
	return is
}

// scanners holds the Scanners of IsObject.
var scanners = sync.Pool{New: func() any { return new(jsonscan.Scanner) }}

// ScanObject is [IsObject] with the memory of c.
func ScanObject(c *jsonscan.Scanner, text string) bool {
	d, err := c.Scan(unsafe.Slice(unsafe.StringData(text), len(text)), jsonscan.Limits{Bytes: 1 << 30, Depth: 128, Values: 1 << 20})
	return err == nil && d.Root().Kind() == jsonscan.Object
}

// OpenAITier returns the OpenAI APIs' name of a service tier.
func OpenAITier(tier string) string {
	if tier == "standard_only" { // Messages
		return "default"
	}
	return tier
}
