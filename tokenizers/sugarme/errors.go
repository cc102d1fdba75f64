// SPDX-License-Identifier: Apache-2.0

package sugarme

import "errors"

// Conditions that [Error] wraps.
var (
	// ErrOff means that Options.Enable is not set.
	ErrOff = errors.New("the adapter is off")
	// ErrUnverified means that nothing could prove the ids right: the native loader does not take the file and no
	// vectors were given.
	ErrUnverified = errors.New("nothing proves the ids right")
	// ErrDisagrees means that the engine's ids differ from the native loader's or from a vector's.
	ErrDisagrees = errors.New("wrong ids")
	// ErrEngine means that the engine panicked, wanted to end the process or returned an error of its own.
	ErrEngine = errors.New("the engine failed")
	// ErrLimit means that a file or text is longer than allowed.
	ErrLimit = errors.New("over a limit")
	// ErrTime means that a call took longer than allowed, or waited that long for one that did.
	ErrTime = errors.New("out of time")
	// ErrText means that a text is not UTF-8.
	ErrText = errors.New("not UTF-8")
	// ErrUnsupported means that the file asks for something the adapter does not serve.
	ErrUnsupported = errors.New("unsupported")
	// ErrFormat means that the vectors could not be read.
	ErrFormat = errors.New("malformed")
	// ErrPlatform means that the engine does not run on this platform.
	ErrPlatform = errors.New("not on this platform")
)

// Error says why a file could not be loaded or a text not be encoded.
type Error struct {
	Op     string // "load", "check" or "encode"
	Reason string // what is wrong
	Err    error  // one of the conditions above, or an error of the file system or of package tokenizers
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	s := "sugarme: " + e.Op
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }
