// SPDX-License-Identifier: Apache-2.0

// Package bridge lets package replica reach functions of package index that index does not export.
package bridge

import "github.com/weft-go/weft/kvhash/kvevent"

// Hooks are functions of package index. X is its Index, O its Options, S its Stream, K its Key, W its WorkerID, M its Match.
type Hooks[X, O, S, K, W, M any] struct {
	New            func(block int, o *O, journal int) *X
	Load           func(data []byte, o *O, journal int) (*X, error)
	AppendSnapshot func(x *X, dst []byte) []byte
	AppendWorker   func(x *X, dst []byte, id W) []byte
	Restore        func(s *S, data []byte) error
	Version        func(x *X) [16]byte
	AppendDelta    func(x *X, dst []byte, since [16]byte) (delta []byte, now [16]byte, ok bool)
	AddDelta       func(x *X, data []byte) error
	ErrGap         error
	AddStore       func(x *X, k K, tier kvevent.Tier) W
	Attach         func(x *X, worker, store W, on bool)
	AppendMatches  func(x *X, dst []M, hashes []uint64, workers []W, stop int) []M
}

// Index holds the Hooks of package index, which sets it when it is initialized.
var Index any
