// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// pull returns the events of src.
func pull(src io.Reader, opt *chatanswer.DecoderOptions) iter.Seq2[event.Event, error] {
	var lim *block.Limits
	if opt != nil {
		lim = opt.Limits
	}
	d := chatanswer.NewDecoder(opt)
	return streamdec.Pull(src, d, lim, d.AppendWhole)
}
