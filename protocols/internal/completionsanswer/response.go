// SPDX-License-Identifier: Apache-2.0

package completionsanswer

import (
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chunkw"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// AppendResponse appends a response that is not streamed. Every choice of c must have finished and c.Err must be None.
// The response has the same content as the stream of an [Encoder] for the same events. Options that concern chunks have
// no effect.
func AppendResponse(dst []byte, c *event.Collector, opt Options) []byte {
	head := opt.head()
	dst = head.Append(dst)
	for i := range c.Answers {
		if i > 0 {
			dst = append(dst, ',')
		}
		a := &c.Answers[i]
		dst = append(dst, `{"text":"`...)
		for k := range a.Blocks {
			if b := &a.Blocks[k]; b.Kind == event.Text || b.Kind == event.Refusal {
				dst = jsonw.AppendLoose(dst, b.Data)
			}
		}
		dst = append(dst, `","index":`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, `,"logprobs":`...)
		dst = appendLogprobs(dst, a)
		dst = append(dst, `,"finish_reason":"`...)
		dst = append(dst, finishReason(a.Finish)...)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, `],"usage":`...)
	dst = chunkw.AppendUsage(dst, &c.Usage)
	return append(dst, '}')
}

func appendLogprobs(dst []byte, a *event.Answer) []byte {
	var p, all probs
	some := false
	for _, l := range a.Logprobs {
		if jsonw.IsArray(l) && p.read(l) {
			some = true
			all.join(&p)
		}
	}
	if !some {
		return append(dst, "null"...)
	}
	return all.append(dst)
}
