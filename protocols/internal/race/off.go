// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package race tells tests whether the race detector is on.
package race

// Enabled reports whether the race detector is on. It allocates, so allocation tests are skipped under it.
const Enabled = false
