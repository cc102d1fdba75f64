// SPDX-License-Identifier: Apache-2.0

package completionsanswer_test

import (
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// pull returns the events of src.
func pull(src io.Reader, opt *completionsanswer.DecoderOptions) iter.Seq2[event.Event, error] {
	var lim *block.Limits
	if opt != nil {
		lim = opt.Limits
	}
	d := completionsanswer.NewDecoder(opt)
	return streamdec.Pull(src, d, lim, d.AppendWhole)
}
