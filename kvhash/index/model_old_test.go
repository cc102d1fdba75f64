// SPDX-License-Identifier: Apache-2.0

//go:build !weftnext

package index_test

import (
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// What the model leaves out where the index does not have it yet; model_next_test.go has the other half.

const multiples = false

func given(*kvevent.Event) []uint64 { return nil }

func chainGiven(*rapid.T, *history, *kvevent.Event, string, int) {}

func searchToo(*rapid.T, *history, []uint64, []int32) {}

func readToo(r *reader, q, _ int) error { return r.match(q) }

func stats(*index.Index) any { return nil }

// returnsMemory says whether removals alone give the memory back.
const returnsMemory = false

// ambiguity is by how much smaller the tests are in which one engine hash or one parent stands for many blocks: their work grows as
// the square.
const ambiguity = 20

func giveAny(*kvevent.Event, func() byte) {}

func moreOps(*history, map[string]func(*rapid.T)) {}

var moreRaces []race
