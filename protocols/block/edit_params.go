// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// otherSpellings maps, per API, a field to the alternative that is read if it is absent.
var otherSpellings = [...]map[string]string{
	Chat:     {"tool_choice": "function_call"},
	Messages: {"output_config": "output_format"},
}

// writeParams changes the fields old, our encoding of the current parameters, to list. It writes only what differs,
// including inside objects, so fields that are not modeled are preserved.
func (r *Request) writeParams(old, list []member) {
	e, root := r.editor(), r.doc.Root()
	find := func(list []member, key string) []byte {
		if i := slices.IndexFunc(list, func(m member) bool { return m.Key == key }); i >= 0 {
			return list[i].Value
		}
		return nil
	}
	stop := root.Get("stop")
	mixed := false // stop contains both token IDs and texts
	for v := stop.First(); v.Exists() && stop.Kind() == jsonscan.Array; v = stop.Next(v) {
		mixed = mixed || v.Kind() == jsonscan.Number
	}
	mixed = mixed && (string(find(old, "stop")) != string(find(list, "stop")) || string(find(old, "stop_token_ids")) != string(find(list, "stop_token_ids")))
	if mixed {
		e.DeleteMember(root, "stop")
		r.dirty = true
	}
	for _, m := range old {
		if find(list, m.Key) != nil {
			continue
		}
		r.dropParam(e, root, m.Key, m.Value)
		if m.Also != "" {
			e.DeleteMember(root, m.Also)
		}
		r.dropOther(e, root, m.Key)
	}
	for _, m := range list {
		was := find(old, m.Key)
		if string(was) == string(m.Value) && !(mixed && (m.Key == "stop" || m.Key == "stop_token_ids")) {
			continue
		}
		key := m.Key
		if m.Also != "" && root.Get(m.Also).Exists() && !root.Get(m.Key).Exists() {
			key = m.Also
		}
		if r.dropOther(e, root, m.Key) {
			was = nil // write all of it
		}
		setParam(e, root, key, was, m.Value)
	}
}

// dropOther removes the alternative spelling of a field and reports whether one was present.
func (r *Request) dropOther(e *jsonscan.Edits, root jsonscan.Value, key string) bool {
	if key == "parallel_tool_calls" { // some converters put the setting here
		if v := root.Get("tool_choice"); v.Get("disable_parallel_tool_use").Exists() {
			e.DeleteMember(v, "disable_parallel_tool_use")
			r.dirty = true
		}
		return false
	}
	if int(r.API()) >= len(otherSpellings) {
		return false
	}
	other := otherSpellings[r.API()][key]
	if other == "" || !root.Get(other).Exists() {
		return false
	}
	e.DeleteMember(root, other)
	r.dirty = true
	return true
}

// setParam sets the field key of obj. was is our previous encoding of it, or nil if it had none.
func setParam(e *jsonscan.Edits, obj jsonscan.Value, key string, was, value []byte) {
	if v := obj.Get(key); v.Kind() == jsonscan.Object && !v.Opaque() && !e.Replaced(v) && len(value) > 0 && value[0] == '{' {
		if was == nil || was[0] != '{' {
			was = []byte("{}")
		}
		o, err := scanOwn(was)
		n, also := scanOwn(value)
		if err == nil && also == nil {
			mergeParam(e, v, o.Root(), n.Root())
			return
		}
	}
	e.SetMember(obj, key, value)
}

// mergeParam changes an object of the body from was to now and preserves its other fields.
func mergeParam(e *jsonscan.Edits, v, was, now jsonscan.Value) {
	for m := now.First(); m.Exists(); m = now.Next(m) {
		key := m.Key()
		w, old := was.Get(key), v.Get(key)
		switch {
		case w.Exists() && string(w.Raw()) == string(m.Raw()):
		case old.Kind() == jsonscan.Object && !old.Opaque() && !e.Replaced(old) && m.Kind() == jsonscan.Object && !m.Opaque() &&
			w.Kind() == jsonscan.Object && !w.Opaque():
			mergeParam(e, old, w, m)
		default:
			e.SetMember(v, key, slices.Clone(m.Raw()))
		}
	}
	for m := was.First(); m.Exists(); m = was.Next(m) {
		if !now.Get(m.Key()).Exists() {
			e.DeleteMember(v, m.Key())
		}
	}
}

// dropParam removes the field key of obj, which our encoder wrote as was. If the object has other fields as well, it
// removes only those in was.
func (r *Request) dropParam(e *jsonscan.Edits, obj jsonscan.Value, key string, was []byte) {
	v := obj.Get(key)
	if v.Kind() == jsonscan.Object && !v.Opaque() && !e.Replaced(v) && was[0] == '{' {
		if o, err := scanOwn(was); err == nil {
			more := false
			for m := v.First(); m.Exists(); m = v.Next(m) {
				more = more || !o.Root().Get(m.Key()).Exists()
			}
			if more {
				mergeParam(e, v, o.Root(), jsonscan.Value{})
				return
			}
		}
	}
	e.DeleteMember(obj, key)
}
