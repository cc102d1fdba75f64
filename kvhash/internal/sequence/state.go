// SPDX-License-Identifier: Apache-2.0

package sequence

import "fmt"

// State specifies how much is known about a rank's cache; see State of package index.
type State uint8

// The states.
const (
	Unknown State = iota
	Degraded
	Exact
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Degraded:
		return "degraded"
	case Exact:
		return "exact"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}
