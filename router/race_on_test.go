// SPDX-License-Identifier: Apache-2.0

//go:build race

package router_test

const raceEnabled = true
