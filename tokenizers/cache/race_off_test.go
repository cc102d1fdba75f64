// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cache_test

const raceEnabled = false
