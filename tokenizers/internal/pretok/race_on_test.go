// SPDX-License-Identifier: Apache-2.0

//go:build race

package pretok_test

const raceEnabled = true
