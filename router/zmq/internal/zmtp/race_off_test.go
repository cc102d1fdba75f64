// SPDX-License-Identifier: Apache-2.0

//go:build !race

package zmtp_test

const raceEnabled = false
