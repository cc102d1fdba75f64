// SPDX-License-Identifier: Apache-2.0

package sugarme

import (
	"errors"
	"fmt"
)

// Conditions that errors of this package wrap. Others wrap [tokenizers.ErrFormat], [tokenizers.ErrLimit],
// [tokenizers.ErrUnsupported], [context.DeadlineExceeded] or an error of the file system.
var (
	// ErrUnverified means that nothing could prove the IDs right: the native loader does not take the file and no
	// vectors were given. It is also the error if Options.Enable is not set.
	ErrUnverified = errors.New("ids not verified")
	// ErrDisagrees means that the engine's IDs differ from the native loader's or from a vector's.
	ErrDisagrees = errors.New("ids differ")
	// ErrEngine means that the engine panicked, tried to end the process or returned an error of its own.
	ErrEngine = errors.New("engine failed")
)

// fail returns an error of an operation: load, check or encode.
func fail(op string, err error, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	switch {
	case reason == "":
		return fmt.Errorf("sugarme: %s: %w", op, err)
	case err == nil:
		return fmt.Errorf("sugarme: %s: %s", op, reason)
	}
	return fmt.Errorf("sugarme: %s: %w: %s", op, err, reason)
}
