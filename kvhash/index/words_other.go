// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || race

package index

import "sync/atomic"

func set64(w *atomic.Uint64, v uint64) { w.Store(v) }

func set32(w *atomic.Uint32, v uint32) { w.Store(v) }
