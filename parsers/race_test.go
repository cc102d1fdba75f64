// SPDX-License-Identifier: Apache-2.0

//go:build race

package parsers_test

const raceEnabled = true
