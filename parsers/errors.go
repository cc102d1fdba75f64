// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"errors"
	"fmt"
	"strings"
)

// LimitError reports that the output passed a limit. The events before it have been delivered.
type LimitError struct {
	Limit  string // which, such as "calls"
	Max    int64
	Offset int64 // bytes since Reset of what went beyond
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("parsers: %s exceed %d at offset %d", e.Limit, e.Max, e.Offset)
}

// UnknownFamilyError reports a family name that is in no registry.
type UnknownFamilyError struct {
	Name  string
	Near  []string // known names that look like it, best first
	Model string   // the family of the model that Name seems to be, as ModelFamily has it, or ""
}

func (e *UnknownFamilyError) Error() string {
	s := fmt.Sprintf("parsers: unknown family %q", e.Name)
	switch {
	case len(e.Near) > 0:
		s += "; did you mean " + strings.Join(e.Near, ", ") + "?"
	case e.Model != "":
		s += "; that is a model of family " + e.Model + ": see ModelFamily"
	}
	return s
}

var errClosed = errors.New("parsers: Feed after Close; call Reset first")
