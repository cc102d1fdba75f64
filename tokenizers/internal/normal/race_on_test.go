// SPDX-License-Identifier: Apache-2.0

//go:build race

package normal_test

const raceEnabled = true
