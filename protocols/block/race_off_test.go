// SPDX-License-Identifier: Apache-2.0

//go:build !race

package block_test

const raceEnabled = false
