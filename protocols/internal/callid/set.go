// SPDX-License-Identifier: Apache-2.0

package callid

import "slices"

// Set gives the calls of one answer their ids. Every call that opens or aborts is told to it, in order and whether or
// not it is sent, so that streams and whole answers agree. The zero value is ready for use. A call costs the same however
// many there were; ids of the producer's own are held without an allocation while there are few.
type Set struct {
	n    int32
	few  [8]string           // the first ids
	many map[string]struct{} // all ids, once there are more
}

// Assign returns the ordinal of the next call of choice and its id: given, the producer's own, unless it is empty or an
// earlier call has it, else a minted one. Clients join results to calls by id, so a repeated one would lose a result.
func (s *Set) Assign(prefix, suffix string, choice int32, given string) (id string, n int32) {
	if given == "" || s.has(given) {
		given = string(Append(nil, prefix, suffix, choice, s.n))
		for s.has(given) { // a producer that uses our form
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

// add holds the id of the next call and returns its ordinal.
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
