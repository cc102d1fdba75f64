// SPDX-License-Identifier: Apache-2.0

package kvevent

import "fmt"

// Trust says how far what is known about a rank's cache can be believed. Higher is better; the zero value knows nothing.
type Trust uint8

// The degrees of trust.
const (
	// Unknown means that nothing was heard from the rank: it may hold anything.
	Unknown Trust = iota
	// Degraded means that something was lost or is missing: what is known may be wrong in both directions.
	Degraded
	// Exact means that every change was seen from the beginning, or since a snapshot.
	Exact
)

// String returns the degree in lower case.
func (t Trust) String() string {
	switch t {
	case Unknown:
		return "unknown"
	case Degraded:
		return "degraded"
	case Exact:
		return "exact"
	}
	return fmt.Sprintf("trust(%d)", uint8(t))
}
