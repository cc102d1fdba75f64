// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/binary"

	"github.com/weft-go/weft/kvhash/internal/bridge"
)

// The functions that package replica exports. They are in a separate package because their API is not yet stable.
func init() {
	bridge.Index = bridge.Hooks[Index, Options, Stream, Key, WorkerID, Match]{
		New:            newWithJournal,
		Load:           load,
		AppendSnapshot: (*Index).appendAll,
		AppendWorker:   (*Index).appendOne,
		Restore:        (*Stream).restore,
		Version:        func(x *Index) [16]byte { return x.version().bytes() },
		AppendDelta: func(x *Index, dst []byte, since [16]byte) ([]byte, [16]byte, bool) {
			dst, now, ok := x.appendDelta(dst, versionOf(since))
			return dst, now.bytes(), ok
		},
		AddDelta: (*Index).addDelta,
		ErrGap:   errGap,
		AddStore: (*Index).addStore,
		Attach:   (*Index).attach,
		AppendMatches: func(x *Index, dst []Match, hashes []uint64, workers []WorkerID, stop int) []Match {
			return x.search(dst, hashes, &query{workers: workers, stop: stop})
		},
	}
}

func (v version) bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], v.Count)
	binary.BigEndian.PutUint64(b[8:], v.Sum)
	return b
}

func versionOf(b [16]byte) version {
	return version{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}
