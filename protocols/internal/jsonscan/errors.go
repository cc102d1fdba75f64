// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"fmt"
	"strconv"
)

// ErrorKind is the class of an [Error].
type ErrorKind uint8

// The classes of errors.
const (
	Syntax    ErrorKind = iota + 1 // not JSON, or truncated
	Encoding                       // invalid UTF-8
	Duplicate                      // a name occurs twice in one object
	Limit                          // a limit was exceeded
)

// Error is an error in a document.
type Error struct {
	Kind   ErrorKind
	Path   string // of the value that contains the error, for example messages[3].content[1]; empty at the root
	Offset int    // bytes before the error
	Msg    string
	Limit  string // Kind Limit: the limit's name
	Max    int64  // Kind Limit: its value
}

// Error returns the path, the message and the offset.
func (e *Error) Error() string {
	at := e.Path
	if at == "" {
		at = "request"
	}
	return fmt.Sprintf("%s: %s at byte %d", at, e.Msg, e.Offset)
}

// AppendPathKey appends a field name to a path: a.b, or a["odd name"].
func AppendPathKey(dst, key []byte) []byte {
	plain := len(key) > 0
	for i, c := range key {
		if c == '_' || c == '-' && i > 0 || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		plain = false
		break
	}
	if !plain {
		if len(key) > 64 {
			key = key[:64]
		}
		dst = append(dst, '[')
		dst = strconv.AppendQuoteToASCII(dst, string(key))
		return append(dst, ']')
	}
	if len(dst) > 0 {
		dst = append(dst, '.')
	}
	return append(dst, key...)
}

// AppendPathIndex appends an array index to a path.
func AppendPathIndex(dst []byte, i int) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, int64(i), 10)
	return append(dst, ']')
}
