// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// TestNext checks that the next prompt begins with the ids of Prompt.Next and that little but the new text follows, with and without a Memo, for
// results of calls and for a question, and that the conversation's memory is as before.
func TestNext(t *testing.T) {
	tok := ownTokenizer(t)
	for _, name := range []string{"chatml", "harmony", "deepseek_v3_2", "deepseek_v4", "kimi_k3", "mistral"} {
		m := newModel(t, lookup(name, nil), family.New("hermes"), prompt.Options{Tokenizer: tok})
		for _, calls := range []bool{false, true} {
			for _, memo := range []*prompt.Memo{nil, prompt.NewMemo(0)} {
				t.Run(fmt.Sprintf("%s/calls=%v/memo=%v", name, calls, memo != nil), func(t *testing.T) {
					render := func(req *block.Request) *prompt.Prompt {
						var turn *prompt.Turn
						if memo != nil {
							turn = memo.Turn("a", "", "s")
						}
						p, err := turn.Render(m, req, noon)
						require.NoError(t, err)
						p.Namespace = "x"
						p.IDs()
						return p
					}
					conversation := func(more ...block.Turn) *block.Request {
						req := block.NewRequest(append([]block.Turn{
							block.NewTurn(block.RoleUser, "What is in a.go?"),
							{Role: block.RoleAssistant, Blocks: []block.Block{
								{Kind: block.Reasoning, Text: "I should look."}, {Kind: block.ToolCall, CallID: "1", Name: "read", Args: `{"path":"a.go"}`},
							}},
							{Role: block.RoleTool, Blocks: []block.Block{block.NewResult("1", "package a")}},
						}, more...)...)
						require.NoError(t, req.SetTools(block.Tool{Name: "read", Schema: []byte(`{"type":"object"}`)}))
						return req
					}
					response := block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{{Kind: block.Reasoning, Text: "It is a package."}, {Kind: block.Text, Text: "A package."}}}
					next := block.NewTurn(block.RoleUser, "Zqr and b.go?")
					if calls {
						response.Blocks = append(response.Blocks, block.Block{Kind: block.ToolCall, CallID: "2", Name: "read", Args: `{"path":"b.go"}`},
							block.Block{Kind: block.ToolCall, CallID: "3", Name: "read", Args: `{"path":"c.go"}`})
						next = block.Turn{Role: block.RoleTool, Blocks: []block.Block{block.NewResult("2", "Zqr package b"), block.NewResult("3", "package c")}}
					}
					p := render(conversation())
					var before [2]int
					if memo != nil {
						before[0], before[1] = memo.Len()
					}
					ids, err := p.Next(conversation(), response)
					require.NoError(t, err)
					if memo != nil {
						n, bytes := memo.Len()
						require.Equal(t, before, [2]int{n, bytes})
					}
					want := render(conversation(response, next))
					require.Less(t, len(ids), len(want.IDs()))
					require.Equal(t, want.IDs()[:len(ids)], slices.Clone(ids))
					rest := spell(tok, want.IDs()[len(ids):])
					require.Regexp(t, `^\s*Zqr`, rest, "of %s", want.Text)
				})
			}
		}
	}
}

// TestNextRefused checks the errors of Prompt.Next.
func TestNextRefused(t *testing.T) {
	m := newModel(t, lookup("chatml", nil), family.New("hermes"), prompt.Options{Tokenizer: ownTokenizer(t)})
	req, err := wire.Completions.Decode([]byte(`{"model":"m","prompt":"Once upon"}`), nil)
	require.NoError(t, err)
	_, err = m.Raw([]uint32{1, 2}).Next(req, block.NewTurn(block.RoleAssistant, "a time"))
	require.Error(t, err)
}
