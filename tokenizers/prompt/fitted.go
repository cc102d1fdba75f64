// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// fit returns the positions of the blocks in the messages that were passed to the template.
//
// Fit joins messages, moves system text into the first user message and converts calls to text, but it keeps every text
// and their order. So each text is searched for after the previous one. A match that is too early is still not after
// the block.
func (p *Prompt) fit() []place {
	out := make([]place, len(p.places))
	for i := range out {
		out[i].Position = p.places[i]
	}
	if p.values != nil {
		list := jsonval.Value{Kind: jsonval.Array, List: p.values}
		p.fitted, p.values = list.AppendJSON(nil), nil
	}
	if p.fitted == nil {
		return out
	}
	f := fitted{budget: 16*len(p.fitted) + 1<<10, last: -1}
	if err := json.Unmarshal(p.fitted, &f.list); err != nil {
		f.list = nil // cannot happen: Fit encoded them
	}
	for i := range f.list {
		if len(f.list[i].Calls) > 0 {
			f.calls = append(f.calls, i)
		}
	}
	f.keeps = len(f.calls) > 0
	for i := 0; i < len(out); {
		n := 1
		for i+n < len(out) && out[i].sameText(&out[i+n]) {
			n++
		}
		f.move(out[i : i+n])
		i += n
	}
	return out
}

// fitted is a forward search in messages that Fit changed.
type fitted struct {
	list []struct {
		Content json.RawMessage
		Calls   []json.RawMessage `json:"tool_calls"`
	}
	at    int      // index of the current message
	texts []string // decoded texts of its content; one if the content is a string
	whole bool     // the content is a string
	read  bool     // texts are set for the current message
	text  int      // index of the current text
	off   int      // bytes of the current text that were searched

	keeps bool  // calls were not converted to text
	calls []int // indexes of later messages with calls
	last  int   // index before Fit of the last message with calls

	budget int // bytes that may still be searched; keeps the time linear
}

// load decodes the content of the current message.
func (f *fitted) load() {
	if f.read {
		return
	}
	f.budget -= len(f.list[f.at].Content)
	f.read, f.whole, f.texts, f.text, f.off = true, true, nil, 0, 0
	var s string
	if json.Unmarshal(f.list[f.at].Content, &s) == nil {
		f.texts = []string{s}
		return
	}
	f.whole = false
	var parts []struct{ Text string }
	_ = json.Unmarshal(f.list[f.at].Content, &parts) // other content has no texts
	for _, part := range parts {
		f.texts = append(f.texts, part.Text)
	}
}

// move updates places, which share one text, to the text's position after Fit.
func (f *fitted) move(places []place) {
	p := &places[0]
	was := p.Message
	switch {
	case p.Tool >= 0:
		return
	case p.Member == "tool_calls" && f.keeps:
		if f.last != was && len(f.calls) > 0 {
			f.last = was
			f.at, f.read, f.calls = f.calls[0], f.read && f.at == f.calls[0], f.calls[1:]
		}
		for i := range places {
			places[i].Message, places[i].lost = f.at, f.last != was
		}
		return
	case p.Member != "content" && p.Member != "tool_calls": // reasoning cannot be marked
		for i := range places {
			places[i].lost = true
		}
		return
	}
	if strings.TrimSpace(p.Text) == "" || !f.find(p.Text) {
		for i := range places {
			places[i].lost = true
		}
		return
	}
	index, size := f.text, len(p.Text)
	if f.whole {
		index = -1
	}
	for i := range places {
		q := &places[i]
		q.Message, q.Member, q.Index = f.at, "content", index
		q.Offset += f.off
		q.Text = f.texts[f.text]
	}
	f.off += size
}

// find advances to the next occurrence of text and reports whether there is one. If not, it does not move.
func (f *fitted) find(text string) bool {
	start := *f
	for ; f.at < len(f.list) && f.budget > 0; f.at, f.read = f.at+1, false {
		f.load()
		for ; f.text < len(f.texts); f.text, f.off = f.text+1, 0 {
			f.budget -= len(f.texts[f.text]) - f.off
			if i := strings.Index(f.texts[f.text][f.off:], text); i >= 0 {
				f.off += i
				return true
			}
		}
	}
	start.budget = f.budget
	*f = start
	return false
}
