// SPDX-License-Identifier: Apache-2.0

//go:build !race

package kvevent_test

const raceEnabled = false
