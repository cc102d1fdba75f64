// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/wire"
)

// walkedList is what a Walk passes: the messages, and the rest after them.
type walkedList struct {
	messages []string
	rest     string
	depth    int
	open     strings.Builder
	taken    int // messages taken over
}

// add returns a function for Walk that takes over messages of before.
func (l *walkedList) add(t require.TestingT, before *walkedList) func(kind byte, text string) {
	done := false
	return func(kind byte, text string) {
		switch {
		case done:
			l.rest += fmt.Sprintf("%c%q", kind, text)
			return
		case kind == '^':
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			require.Equal(t, 2, l.depth)
			l.taken += n - len(l.messages)
			l.messages = append(l.messages, before.messages[len(l.messages):n]...)
			return
		case kind == '{' || kind == '[':
			if l.depth++; l.depth <= 2 {
				return
			}
		case kind == '}' || kind == ']':
			l.depth--
			done = l.depth == 1
		}
		if l.depth >= 2 {
			fmt.Fprintf(&l.open, "%c%q", kind, text)
		}
		if l.depth == 2 {
			l.messages = append(l.messages, l.open.String())
			l.open.Reset()
		}
	}
}

// TestWalkNext compares conversations that grow and change with Walk: messages, losses, the calls that Call gets, and the
// positions of marked blocks.
func TestWalkNext(t *testing.T) {
	type object = map[string]any
	text := func(s string) object { return object{"type": "text", "text": s} }
	taken := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		chance := func(percent int) bool { return r.IntN(100) < percent }
		mark := func(o object) object {
			if chance(8) {
				o["cache_control"] = object{"type": "ephemeral"}
			}
			return o
		}
		calls := 0
		messages := func() (out []any) { // of one step of the agent
			if chance(25) {
				out = append(out, object{"role": "user", "content": []any{mark(text(fmt.Sprint("question ", r.IntN(9))))}})
			}
			if chance(12) {
				out = append(out, object{"role": "system", "content": []any{mark(text("late"))}})
			}
			var turn, results []any
			if chance(60) {
				turn = append(turn, object{"type": "thinking", "thinking": "a thought", "signature": "s"})
			}
			turn = append(turn, mark(text(fmt.Sprint("answer ", r.IntN(9)))))
			for range r.IntN(3) {
				calls++
				turn = append(turn, object{"type": "tool_use", "id": fmt.Sprint("c", calls), "name": "f", "input": object{"n": calls}})
				results = append(results, mark(object{"type": "tool_result", "tool_use_id": fmt.Sprint("c", calls), "content": "r", "is_error": chance(30)}))
			}
			if chance(10) {
				turn = append(turn, object{"type": "container_upload", "file_id": "x"})
			}
			out = append(out, object{"role": "assistant", "content": turn})
			if len(results) > 0 {
				r.Shuffle(len(results), func(i, k int) { results[i], results[k] = results[k], results[i] })
				if chance(20) {
					results = append(results, text("<system-reminder>r</system-reminder>"))
				}
				if chance(3) {
					results = append(results, object{"type": "mid_conv_system", "content": []any{text("an instruction")}})
				}
				out = append(out, object{"role": "user", "content": results})
			}
			return out
		}
		system, list := []any{text("be brief")}, []any{object{"role": "user", "content": "first"}}
		dropped := map[int]bool{}
		opt := chat.RenderOptions{TextOnly: true, System: chat.SystemMode(r.IntN(2)), ReasoningSegments: chance(30)}
		var req *block.Request
		var before *chat.Walked
		var last *walkedList
		for range 8 {
			for range r.IntN(3) {
				list = append(list, messages()...)
			}
			switch i := r.IntN(len(list)); r.IntN(12) {
			case 0:
				system = []any{text(fmt.Sprint("be ", r.IntN(9)))}
			case 1:
				system = nil
			case 2:
				if len(list) > 1 {
					list = slices.Delete(slices.Clone(list), i, i+1)
				}
			case 3:
				list = slices.Insert(slices.Clone(list), i, messages()...)
			case 4:
				dropped[r.IntN(len(list)+1)] = true
			case 5:
				opt.ReasoningSegments = !opt.ReasoningSegments
			}
			body := object{"model": "m", "max_tokens": 9, "messages": list}
			if system != nil {
				body["system"] = system
			}
			data, err := json.Marshal(body)
			require.NoError(t, err)
			req, err = wire.Messages.DecodeNext(req, data, nil)
			require.NoError(t, err)
			marks, _ := wire.Breakpoints(req)

			run := func(walk func(opt *chat.RenderOptions)) (seen []string, places []chat.Position) {
				opt := opt
				opt.Past = func(turn int) (keep, blank bool) { return !dropped[turn], dropped[turn] && turn%2 == 0 }
				opt.Call = func(id, args string) (string, string, bool) {
					if args != "" {
						seen = append(seen, id)
					}
					return id + "!", args, false
				}
				opt.Places = &places
				walk(&opt)
				return seen, places
			}
			var want, got walkedList
			var losses, again []block.Loss
			seen, places := run(func(o *chat.RenderOptions) { losses = chat.Walk(req, want.add(t, nil), o) })
			seenNext, placesNext := run(func(o *chat.RenderOptions) { before, again = chat.WalkNext(req, before, got.add(t, last), o) })
			require.Equal(t, want.messages, got.messages, "seed %d: %s", seed, data)
			require.Equal(t, want.rest, got.rest)
			require.Equal(t, losses, again, "seed %d: %s", seed, data)
			require.Equal(t, seen, seenNext)
			for _, m := range marks {
				if m.Tool >= 0 {
					continue
				}
				at := req.Turns()[m.Turn].Blocks[m.Block].At
				is := func(p chat.Position) bool { return p.At == at }
				require.Equal(t, places[slices.IndexFunc(places, is)], placesNext[slices.IndexFunc(placesNext, is)], "seed %d: %s", seed, data)
			}
			last = &got
			taken += got.taken
		}
	}
	require.Greater(t, taken, 1000)
}
