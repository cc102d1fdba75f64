// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/wire"
)

// TestBreakpointsOfEdits checks that marks and their faults are those of the edited request, with paths in the body that
// the client sent.
func TestBreakpointsOfEdits(t *testing.T) {
	const body = `{"system":[{"type":"text","text":"header"},{"type":"text","text":"s","cache_control":"x"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b","cache_control":{"type":5}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"c"}]}]}`
	r, err := wire.Messages.Decode([]byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(r.Turns()[0].Blocks[0].At); err != nil {
		t.Fatal(err)
	}
	first := r.Turns()[1].Blocks[0]
	first.Cache = &block.Cache{Type: "ephemeral", TTL: "2h"}
	if err := r.Set(first.At, first); err != nil {
		t.Fatal(err)
	}
	second := r.Turns()[1].Blocks[1]
	second.Cache = nil
	if err := r.Set(second.At, second); err != nil {
		t.Fatal(err)
	}
	got, faults := wire.Breakpoints(r)
	want := []intent.Breakpoint{{Tool: -1, Turn: 1, Block: 0, Inner: -1, TTL: 5 * time.Minute}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var where []string
	for _, f := range faults {
		where = append(where, f.Where)
	}
	if diff := cmp.Diff([]string{"system[1].cache_control", "messages[0].content[0].cache_control.ttl"}, where); diff != "" {
		t.Error(diff)
	}

	// Nested blocks of other content have no position yet.
	result := r.Turns()[2].Blocks[0]
	result.Content = []block.Block{{Kind: block.Text, Text: "d", Cache: &block.Cache{Type: "ephemeral"}}}
	if err := r.Set(result.At, result); err != nil {
		t.Fatal(err)
	}
	got, _ = wire.Breakpoints(r)
	if diff := cmp.Diff(append(want, intent.Breakpoint{Tool: -1, Turn: 2, Block: 0, Inner: 0, TTL: 5 * time.Minute}), got); diff != "" {
		t.Error(diff)
	}
	if err := r.SetText(r.Turns()[2].Blocks[0].Content[0].At, "e"); err != nil {
		t.Error(err)
	}
}
