// SPDX-License-Identifier: Apache-2.0

package replay

// Sealed reports whether the token of the text so far is a sealed one.
func (s *TokenWriter) Sealed() bool { return s.sealed() }
