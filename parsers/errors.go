// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"errors"
	"fmt"
	"strings"
)

// LimitError reports output that exceeded a limit. The events before it have been delivered.
type LimitError struct {
	Offset int64 // of the first byte beyond the limit, in bytes since Reset

	limit string // which, such as "calls"
	max   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("parsers: %s exceed %d at offset %d", e.limit, e.max, e.Offset)
}

// UnknownFamilyError reports a family name that is not in a registry.
type UnknownFamilyError struct {
	Name  string
	Near  []string // similar known names, best first
	Model string   // the family of the model that Name seems to be, as returned by LookupModel, or ""

	known   []string // the names in the registry
	refused string   // why weft has no family of that name
}

// Error returns a message with Near, Model or, if both are empty, all names in the registry. For a name that other engines
// register it reports why weft does not have it.
func (e *UnknownFamilyError) Error() string {
	s := fmt.Sprintf("parsers: unknown family %q", e.Name)
	switch {
	case e.refused != "":
		return s + "; " + e.refused
	case len(e.Near) > 0:
		return s + "; did you mean " + strings.Join(e.Near, ", ") + "?"
	case e.Model != "":
		return s + "; it is the name of a model of family " + e.Model
	case len(e.known) > 0:
		return s + "; known are " + strings.Join(e.known, ", ")
	}
	return s
}

var errFinished = errors.New("parsers: Append after Finish; call Reset first")
