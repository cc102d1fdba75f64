// SPDX-License-Identifier: Apache-2.0

//go:build !weftnext

package index_test

import (
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// What the model leaves out where the index does not have it yet; model_next_test.go has the other half.

const multiples = false

func given(*kvevent.Event) []uint64 { return nil }

func chainGiven(*rapid.T, *history, *kvevent.Event, string, int) {}

func searchToo(*rapid.T, *history, []uint64, []int32) {}

func readToo(r *reader, q, _ int) error { return r.match(q) }
