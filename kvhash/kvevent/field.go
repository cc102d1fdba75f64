// SPDX-License-Identifier: Apache-2.0

package kvevent

import "math"

// Field returns a field of an event as the engine sent it, such as "lora_id", "medium", "kv_cache_spec_sliding_window",
// "extra_keys" or "session_id" of vLLM. batch counts the batches that the last call of [Decoder.Append] or
// [Decoder.AppendFrames] appended, event the events of that batch. ok reports whether the field is present: keys of
// arrays are the names of the elements in vLLM's source. For TensorRT-LLM and Dynamo, a field is a key of the event or
// of its envelope. Events of the format Compact have no fields.
//
// The value is nil, a bool, an int64, a uint64 if it is greater than math.MaxInt64, a float64, a string, a []byte, a
// []any or a map[string]any. It is a copy. The payload must not have been modified since it was decoded. O(payload of the event).
func (d *Decoder) Field(batch, event int, name string) (value any, ok bool) {
	if d.format == Compact || batch < 0 || batch >= len(d.starts) || event < 0 {
		return nil, false
	}
	end := len(d.from)
	if batch+1 < len(d.starts) {
		end = d.starts[batch+1]
	}
	if event += d.starts[batch]; event >= end {
		return nil, false
	}
	r := &reader{buf: d.r.buf, pos: d.from[event]}
	switch v := r.next(); v.kind {
	case mapKind:
		at, _ := r.places(v.n, name)
		if at[0] == 0 {
			return nil, false
		}
		r.pos = at[0]
	case arrayKind:
		if !r.find(v.n, fieldOf([]byte(name))) {
			return nil, false
		}
	default:
		return nil, false
	}
	return r.any(0)
}

// find moves r, in an event that is an array of n elements, to the element with the given meaning.
func (r *reader) find(n int, f field) bool {
	var k Kind
	for i, shift := 0, 0; i < n && r.ok(); i++ {
		is := position(k, i-shift)
		if k == Stored && is >= fGroup && r.peek() == arrayKind {
			is = fObjects
			shift++
		}
		if is == f && f != noField {
			return true
		}
		start := r.pos
		if v := r.next(); is == fType && v.kind == stringKind {
			k = kindOf(v.raw)
		}
		r.pos = start
		r.skip()
	}
	return false
}

// maxValueDepth limits the depth of values that Field returns.
const maxValueDepth = 32

// any reads a value; false if it is invalid, of a type that is not supported, or too deep.
func (r *reader) any(depth int) (any, bool) {
	v := r.next()
	switch v.kind {
	case nilKind:
		return nil, true
	case boolKind:
		return v.num != 0, true
	case intKind:
		if !v.neg && v.num > math.MaxInt64 {
			return v.num, true
		}
		return int64(v.num), true
	case floatKind:
		return math.Float64frombits(v.num), true
	case stringKind:
		return string(v.raw), true
	case binKind:
		return append([]byte{}, v.raw...), true
	case arrayKind:
		if depth == maxValueDepth {
			return nil, false
		}
		list := make([]any, v.n) // v.n is at most the payload's length
		for i := range list {
			var ok bool
			if list[i], ok = r.any(depth + 1); !ok {
				return nil, false
			}
		}
		return list, true
	case mapKind:
		if depth == maxValueDepth {
			return nil, false
		}
		m := make(map[string]any)
		for range v.n {
			key := r.next()
			r.rest(key)
			value, ok := r.any(depth + 1)
			if !ok {
				return nil, false
			}
			if key.kind == stringKind {
				m[string(key.raw)] = value
			}
		}
		return m, true
	}
	return nil, false
}
