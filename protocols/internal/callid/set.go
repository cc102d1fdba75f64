// SPDX-License-Identifier: Apache-2.0

package callid

import "slices"

// Set assigns IDs to the calls of one response. Assign must be called for every call that opens or aborts, in order and
// whether or not it is sent, so that streams and complete responses have the same IDs. The zero value is ready to use.
// The cost of a call does not depend on the number of earlier ones. The first few IDs are stored without an allocation.
type Set struct {
	n    int32
	few  [8]string           // the first IDs
	many map[string]struct{} // all IDs, once there are more than few holds
}

// Assign returns the ordinal of the next call of choice and its ID: given, the engine's ID, unless it is empty or an
// earlier call has it; otherwise a generated one. Clients link results to calls by ID, so a repeated ID would lose a
// result.
func (s *Set) Assign(prefix, suffix string, choice int32, given string) (id string, n int32) {
	if given == "" || s.has(given) {
		given = string(Append(nil, prefix, suffix, choice, s.n))
		for s.has(given) { // an engine that uses our form
			given += "-"
		}
	}
	return given, s.add(given)
}

func (s *Set) has(id string) bool {
	if s.many != nil {
		_, ok := s.many[id]
		return ok
	}
	return slices.Contains(s.few[:min(int(s.n), len(s.few))], id)
}

// add stores the ID of the next call and returns its ordinal.
func (s *Set) add(id string) int32 {
	n := s.n
	s.n++
	if int(n) < len(s.few) {
		s.few[n] = id
		return n
	}
	if s.many == nil {
		s.many = make(map[string]struct{}, 4*len(s.few))
		for _, first := range s.few {
			s.many[first] = struct{}{}
		}
	}
	s.many[id] = struct{}{}
	return n
}
