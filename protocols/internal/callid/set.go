// SPDX-License-Identifier: Apache-2.0

package callid

import "slices"

// Set gives the calls of one answer their ids. The zero value is ready for use.
type Set struct {
	seen []string
}

// Assign returns the id of call number n of choice: given, the producer's own, unless it is empty or an earlier call
// has it, else a minted one. Clients join results to calls by id, so a repeated one would lose a result.
func (s *Set) Assign(prefix, suffix string, choice, n int32, given string) string {
	if given != "" && !slices.Contains(s.seen, given) {
		s.seen = append(s.seen, given)
		return given
	}
	return string(Append(nil, prefix, suffix, choice, n))
}
