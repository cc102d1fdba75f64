// SPDX-License-Identifier: Apache-2.0

package callid

import "slices"

// Set gives the calls of one answer their ids. Every call that opens or aborts is told to it, in order and whether or
// not it is sent, so that streams and whole answers agree. The zero value is ready for use.
type Set struct {
	n    int32
	seen []string
}

// Assign returns the ordinal of the next call of choice and its id: given, the producer's own, unless it is empty or an
// earlier call has it, else a minted one. Clients join results to calls by id, so a repeated one would lose a result.
func (s *Set) Assign(prefix, suffix string, choice int32, given string) (id string, n int32) {
	n = s.n
	s.n++
	if given == "" || slices.Contains(s.seen, given) {
		given = string(Append(nil, prefix, suffix, choice, n))
		for slices.Contains(s.seen, given) { // a producer that uses our form
			given += "-"
		}
	}
	s.seen = append(s.seen, given)
	return given, n
}
