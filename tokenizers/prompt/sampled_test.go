// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// spell returns the bytes of ids.
func spell(tok *tokenizers.Tokenizer, ids []uint32) string {
	var text []byte
	for _, id := range ids {
		text = tok.AppendToken(text, id)
	}
	return string(text)
}

// TestMemoSampled plays conversations in which the model writes other ids than the tokenizer, some of them wrong, the client
// changes messages, and tenants and salts take turns. Text, segments and the meaning of the ids are those without a memo. A prompt
// that has the text of the last one and of the response has their ids, and nobody else has them.
func TestMemoSampled(t *testing.T) {
	tok := ownTokenizer(t)
	m := newModel(t, lookup("chatml", nil), family.New("hermes"), prompt.Options{Tokenizer: tok})
	byText, added := map[string]uint32{}, map[uint32]bool{}
	for _, a := range tok.AddedTokens() {
		added[a.ID] = true
	}
	for id := range uint32(tok.VocabSize()) {
		if text := tok.AppendToken(nil, id); len(text) > 0 && !added[id] {
			byText[string(text)] = id
		}
	}
	whole, other := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom([]int{0, 0, 0, 20 << 10}).Draw(rt, "limit")
		memo := prompt.NewMemo(limit)
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"some", " words", "ing", "\n", " ", "é", "🙂", "你好", "<|im_end|>", "<|im_start|>user\n", ".", "  x"}), 1, 30)
		said := func(name string) string { return "Z" + strings.Join(words.Draw(rt, name), "") }
		var list []any
		last := map[string]string{}      // texts of prompts and responses, by tenant and salt
		lastIDs := map[string][]uint32{} // the same as ids
		for range rapid.IntRange(2, 6).Draw(rt, "turns") {
			list = append(list, object{"role": "user", "content": said("question")})
			if i := rapid.IntRange(0, 5*len(list)).Draw(rt, "change"); i < len(list) {
				list[i] = object{"role": list[i].(object)["role"], "content": said("changed")}
			}
			owner := rapid.SampledFrom([]string{"a", "a", "a", "b", "a salt"}).Draw(rt, "owner")
			tenant, salt, _ := strings.Cut(owner, " ")
			turn := memo.Turn(tenant, salt, "s")
			body := (&thread{"chat", object{"model": "m", "messages": list}}).String()
			req, err := turn.Decode(wire.Chat, []byte(body), nil)
			require.NoError(rt, err)
			p, err := turn.Render(m, req, noon)
			require.NoError(rt, err)
			plain, err := m.Render(req, noon)
			require.NoError(rt, err)
			p.Namespace, plain.Namespace = salt, salt
			require.Equal(rt, plain.Segments, p.Segments)
			require.Equal(rt, spell(tok, plain.IDs()), spell(tok, p.IDs()))
			plainText, ok := plain.PlainText()
			gotText, gotOK := p.PlainText()
			require.Equal(rt, []any{plainText, ok}, []any{gotText, gotOK})
			_, size := memo.Len()
			require.LessOrEqual(rt, size, cmp.Or(limit, 256<<20))
			only := func(ids []uint32) []uint32 {
				return slices.DeleteFunc(slices.Clone(ids), func(id uint32) bool { return !added[id] })
			}
			require.Equal(rt, only(plain.IDs()), only(p.IDs()))
			if before := lastIDs[owner]; before != nil && strings.HasPrefix(p.Text, last[owner]+"<|im_end|>") && limit == 0 {
				whole++
				require.Equal(rt, before, p.IDs()[:len(before)])
			}
			if lastIDs[owner] == nil {
				other++
				require.Equal(rt, plain.IDs(), p.IDs())
			}
			reply := said("reply")
			var ids []uint32
			for rest := reply; rest != ""; {
				n := rapid.IntRange(1, min(4, len(rest))).Draw(rt, "n")
				for byText[rest[:n]] == 0 && n > 1 {
					n--
				}
				ids, rest = append(ids, byText[rest[:n]]), rest[n:]
			}
			wrong := rapid.IntRange(0, 3).Draw(rt, "wrong") == 0
			if wrong {
				ids = slices.Insert(ids, rapid.IntRange(0, len(ids)).Draw(rt, "at"), uint32(rapid.IntRange(0, tok.VocabSize()+3).Draw(rt, "id")))
			}
			dec, err := m.NewDecoder(req, p, nil)
			require.NoError(rt, err)
			text := ""
			for _, next := range []func([]event.Event) []event.Event{func(dst []event.Event) []event.Event { return dec.AppendTokens(dst, ids...) }, dec.Finish} {
				for _, e := range next(nil) {
					if e.Kind == event.Text {
						text += string(e.Data)
					}
				}
			}
			list = append(list, object{"role": "assistant", "content": text})
			if last[owner], lastIDs[owner] = p.Text+reply, slices.Concat(p.IDs(), ids); wrong {
				last[owner] = "none"
			}
		}
	})
	require.Positive(t, whole)
	require.Positive(t, other)
}

// question returns a decoder for a question with a new Memo.
func question(t *testing.T) (*prompt.Memo, *prompt.Decoder, *tokenizers.Tokenizer) {
	tok := ownTokenizer(t)
	m := newModel(t, lookup("chatml", nil), family.New("hermes"), prompt.Options{Tokenizer: tok})
	memo := prompt.NewMemo(0)
	turn := memo.Turn("", "", "")
	req, err := turn.Decode(wire.Chat, []byte(`{"model":"m","messages":[{"role":"user","content":"q"}]}`), nil)
	require.NoError(t, err)
	p, err := turn.Render(m, req, noon)
	require.NoError(t, err)
	dec, err := m.NewDecoder(req, p, nil)
	require.NoError(t, err)
	return memo, dec, tok
}

// TestMemoSampledBytes checks that the ids of responses count for the limit of a Memo.
func TestMemoSampledBytes(t *testing.T) {
	memo, dec, tok := question(t)
	_, before := memo.Len()
	dec.AppendTokens(nil, slices.Repeat(tok.AppendEncode(nil, "a"), 10_000)...)
	dec.Finish(nil)
	_, after := memo.Len()
	require.Greater(t, after, before+40_000)
}

// TestMemoSampledTrim checks that the ids of a response do not bring back a conversation that was trimmed meanwhile.
func TestMemoSampledTrim(t *testing.T) {
	memo, dec, tok := question(t)
	dec.AppendTokens(nil, tok.AppendEncode(nil, "a")...)
	for range 3 {
		memo.Trim()
	}
	dec.Finish(nil)
	n, size := memo.Len()
	require.Zero(t, n+size)
}
