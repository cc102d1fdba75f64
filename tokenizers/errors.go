// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/folder"
)

// Conditions that [Error] wraps.
var (
	// ErrUnsupported means that the file requires a feature that this version does not support.
	ErrUnsupported = errors.New("unsupported")
	// ErrFormat means that the file is damaged or is not of the expected format.
	ErrFormat = errors.New("malformed")
	// ErrLimit means that the file, or a text to encode, exceeds a limit.
	ErrLimit = errors.New("limit exceeded")
	// ErrSpecial means that a text to encode contains a special token; see [SpecialRefuse].
	ErrSpecial = errors.New("special token")
)

// An Error reports why a tokenizer could not be loaded or a text could not be encoded.
//
// Its text names the file, if any, with its directory if that was opened with os.DirFS, and the path of the faulty value
// in it, such as pre_tokenizer.pretokenizers[0]. It wraps one of the conditions above or an error of the file system.
type Error struct {
	Offset int64 // bytes from the start of the file or of the concatenated segments; -1 if unknown

	dir, file, field, reason string
	err                      error
}

// Error returns file, path, reason and offset in one line.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("tokenizers: ")
	for _, part := range []string{folder.Join(e.dir, e.file), e.field} {
		if part != "" {
			s.WriteString(part + ": ")
		}
	}
	switch e.err {
	case ErrUnsupported, ErrLimit:
		fmt.Fprintf(&s, "%v: %s", e.err, e.reason)
	default:
		s.WriteString(e.reason)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&s, " (offset %d)", e.Offset)
	}
	return s.String()
}

// Unwrap returns the wrapped condition or error.
func (e *Error) Unwrap() error { return e.err }

// A DirError reports a directory that cannot be used because it does not exist or a file is missing.
//
// Its text contains the directory's path as the caller wrote it, if it was opened with os.DirFS.
type DirError struct {
	Missing string   // file that is required, such as "tokenizer.json"
	Found   []string // names in the directory, sorted; names of subdirectories end in a slash
	Err     error    // error of the file system if the directory cannot be read

	dir, by string // by is the prefix of the text: of Load, but not of template.Load
}

// Error returns the missing file and the names found.
func (e *DirError) Error() string {
	const shown = 12
	in := e.by
	if e.dir != "" {
		in += e.dir + ": "
	}
	switch pe, ok := errors.AsType[*fs.PathError](e.Err); {
	case ok:
		return in + "cannot read the directory: " + pe.Err.Error()
	case len(e.Found) == 0:
		return in + e.Missing + " is missing; the directory is empty"
	case len(e.Found) > shown:
		return fmt.Sprintf("%s%s is missing; found %s and %d more", in, e.Missing, strings.Join(e.Found[:shown], ", "), len(e.Found)-shown)
	}
	return in + e.Missing + " is missing; found " + strings.Join(e.Found, ", ")
}

// Unwrap returns e.Err.
func (e *DirError) Unwrap() error { return e.Err }
