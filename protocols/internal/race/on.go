// SPDX-License-Identifier: Apache-2.0

//go:build race

package race

// Enabled reports whether the race detector is enabled. The race detector allocates, so tests of allocation counts are
// skipped if it is enabled.
const Enabled = true
