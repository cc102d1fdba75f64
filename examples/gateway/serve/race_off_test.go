// SPDX-License-Identifier: Apache-2.0

//go:build !race

package serve_test

const raceEnabled = false
