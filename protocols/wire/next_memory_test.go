// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/wire"
)

// nextOf decodes a request after prev, which may be nil.
func nextOf(t *testing.T, api *wire.API, prev *block.Request, body string) *block.Request {
	t.Helper()
	r, err := api.DecodeNext(prev, []byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// heap returns the number of bytes that are in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDecodeNextDocuments checks that the requests of a conversation do not keep the documents of earlier ones.
func TestDecodeNextDocuments(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for api, list := range map[*wire.API][2]string{
		wire.Chat: {
			`{"model":"m","messages":[{"role":"user","content":"q"}`,
			`,{"role":"assistant","content":"%d` + long + `"},{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}],"content":[{"type":"text","text":"c"}]}`,
		},
		wire.Responses: {
			`{"model":"m","input":[{"role":"user","content":"q"}`,
			`,{"role":"assistant","content":"%d` + long + `"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"user","content":"q"}`,
		},
		wire.Messages: {`{"model":"m","messages":[{"role":"user","content":"q"}`, `,{"role":"assistant","content":"%d` + long + `"}`},
	} {
		var docs []weak.Pointer[jsonscan.Doc]
		var req *block.Request
		body := list[0]
		for k := range 20 {
			body += fmt.Sprintf(list[1], k)
			req = nextOf(t, api, req, body+"]}")
			docs = append(docs, weak.Make(codec.DocOf(req)))
		}
		runtime.GC()
		for k, d := range docs[:19] {
			if d.Value() != nil {
				t.Errorf("%v: the document of request %d is in memory", api, k)
			}
		}
		if docs[19].Value() == nil {
			t.Errorf("%v: the check has no effect", api)
		}
		runtime.KeepAlive(req)
	}
}

// TestDecodeNextKeeps checks the memory of requests that were decoded one after the other.
func TestDecodeNextKeeps(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	long := strings.Repeat("word ", 200)
	for name, x := range map[string]struct {
		api  *wire.API
		n    int
		body func(k int) string
	}{
		"messages": {wire.Messages, 200, func(k int) string {
			return `{"model":"m","messages":[{"role":"user","content":"q"}` + strings.Repeat(`,{"role":"assistant","content":[{"type":"text","text":"`+long+`"}]}`, k) + "]}"
		}},
		"chat": {wire.Chat, 200, func(k int) string {
			return `{"model":"m","messages":[{"role":"user","content":"q"}` + strings.Repeat(`,{"role":"assistant","content":"`+long+`"}`, k) + "]}"
		}},
		"a mark in the last block, of unknown type": {wire.Messages, 200, func(k int) string {
			b := `{"model":"m","messages":[{"role":"user","content":"q"}`
			for i := range k + 1 {
				mark := ""
				if i == k {
					mark = `,"cache_control":{"type":"ephemeral"}`
				}
				b += fmt.Sprintf(`,{"role":"user","content":[{"type":"web_fetch_tool_result","tool_use_id":"t%d","content":"%s"%s}]}`, i, long, mark)
			}
			return b + "]}"
		}},
		"a volatile header": {wire.Messages, 60, func(k int) string {
			return fmt.Sprintf(`{"model":"m","system":[{"type":"text","text":"x-header: %04d;"},{"type":"text","text":"%s"}],"messages":[{"role":"user","content":"q"}`, k, strings.Repeat(long, 200)) +
				strings.Repeat(`,{"role":"user","content":"q"}`, k) + "]}"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			var req *block.Request
			for k := range x.n {
				req = nextOf(t, x.api, req, x.body(k))
			}
			size := codec.DocOf(req).Size()
			if kept := heap() - before; kept > 5*int64(size) {
				t.Errorf("a request with a body of %d bytes keeps %d", size, kept)
			}
			runtime.KeepAlive(req)
		})
	}
}

// TestDecodeNextShrinks checks that a short request keeps little of a longer one before it, of which it has a turn: not the values,
// turns and blocks of the others. Request.Memory counts what it keeps.
func TestDecodeNextShrinks(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	for name, many := range map[string]string{
		"turns without blocks": `,{"role":"user"}`,
		"short turns":          `,{"role":"user","content":"x"}`,
		"small values":         `,{"role":"user","content":"","x":[` + strings.Repeat("0,", 2000) + `0]}`,
		"text with escapes":    `,{"role":"user","content":"` + strings.Repeat(`line\n`, 60) + `"}`,
	} {
		for _, api := range []*wire.API{wire.Chat, wire.Messages} {
			const n, size = 20, 60 << 10
			list := make([]*block.Request, n)
			before := heap()
			for i := range n {
				short := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%06d%s"}`, i, strings.Repeat("w", 400))
				long := nextOf(t, api, nil, short+strings.Repeat(many, size/len(many))+"]}")
				list[i] = nextOf(t, api, long, short+"]}")
			}
			kept, counted := (heap()-before)/n, list[0].Memory()
			if kept > 72<<10 {
				t.Errorf("%v, %s: a request with a body of 500 bytes keeps %d bytes", api, name, kept)
			}
			if counted < int(kept)*3/4 || counted > int(kept)*2 {
				t.Errorf("%v, %s: Memory is %d bytes, and the request keeps %d", api, name, counted, kept)
			}
			runtime.KeepAlive(list)
		}
	}
}

// TestMemory compares Request.Memory with the memory of a request.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	for name, part := range map[string]string{
		"turns without blocks": `,{"role":"user"}`,
		"short turns":          `,{"role":"user","content":"x"}`,
		"small values":         `,{"role":"user","content":"","x":[` + strings.Repeat("0,", 2000) + `0]}`,
		"blocks":               `,{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":""},`, 100) + `{"type":"text","text":"x"}]}`,
		"text with escapes":    `,{"role":"user","content":"` + strings.Repeat(`line\n`, 600) + `"}`,
		"text":                 `,{"role":"user","content":"` + strings.Repeat(`word `, 600) + `"}`,
	} {
		for _, api := range []*wire.API{wire.Chat, wire.Messages} {
			body := `{"model":"m","messages":[{"role":"user","content":"q"}` + strings.Repeat(part, (400<<10)/len(part)) + "]}"
			before := heap()
			r := nextOf(t, api, nil, body)
			if ratio := float64(r.Memory()) / float64(heap()-before); ratio < 0.75 || ratio > 1.5 {
				t.Errorf("%v, %s: Memory is %d bytes, %.2f times what the request takes", api, name, r.Memory(), ratio)
			}
			runtime.KeepAlive(body)
			runtime.KeepAlive(r)
		}
	}
}

// TestDecodeNextMerged checks a turn of which an item in the middle became one of the same role.
func TestDecodeNextMerged(t *testing.T) {
	item := `{"role":"assistant","content":[{"type":"output_text","text":"` + strings.Repeat("word ", 80) + `"}]}`
	body := func(middle string) string {
		return `{"model":"m","input":[` + item + "," + middle + "," + item + "]}"
	}
	user := body(`{"role":"user","content":[{"type":"input_text","text":"123456789","prompt_cache_breakpoint":5}]}`)
	assistant := body(`{"role":"assistant","content":[{"type":"output_text","text":"123","prompt_cache_breakpoint":5}]}`) // as long
	got := nextOf(t, wire.Responses, nextOf(t, wire.Responses, nextOf(t, wire.Responses, nil, user), assistant), assistant)
	_, want := wire.Breakpoints(nextOf(t, wire.Responses, nil, assistant))
	_, faults := wire.Breakpoints(got)
	if diff := cmp.Diff(want, faults); diff != "" || len(want) != 1 {
		t.Errorf("%d faults: %s", len(want), diff)
	}
}

// TestStalePositions checks that positions do not outlast an edit after which another turn is at the same place.
func TestStalePositions(t *testing.T) {
	const same = `{"role":"user","content":"same"}`
	body := `{"model":"m","messages":[{"role":"assistant","content":"` + strings.Repeat("w", 600) + `"},` + same + "," + same + "]}"
	q := nextOf(t, wire.Messages, nil, body)
	turns := q.Turns()
	if err := q.Delete(turns[1].At); err != nil {
		t.Fatal(err)
	}
	if err := q.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := q.SetText(turns[1].Blocks[0].At, "x"); err == nil {
		t.Error("the position of a deleted block was accepted:", q.Turns()[1].Text(""))
	}
	q = nextOf(t, wire.Messages, nextOf(t, wire.Messages, nil, body), body)
	at := q.Turns()[1].Blocks[0].At
	if err := q.InsertTurn(1, block.NewTurn(block.RoleUser, "same")); err != nil {
		t.Fatal(err)
	}
	q.Turns()
	if err := q.SetText(at, "x"); err == nil {
		t.Error("the inserted turn was changed:", q.Turns()[1].Text(""))
	}
}
