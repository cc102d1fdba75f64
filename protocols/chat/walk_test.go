// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/wire"
)

// requireWalk checks that the values of Walk are the JSON of AppendMessages and AppendTools.
func requireWalk(t require.TestingT, r *block.Request, opt *chat.RenderOptions) {
	var plain, walked chat.RenderOptions
	var at, again []chat.Position
	if opt != nil {
		plain, walked = *opt, *opt
	}
	plain.Places, walked.Places = &at, &again
	messages, losses := chat.AppendMessages(nil, r, &plain)
	tools, more := chat.AppendTools(nil, r)
	want := `{"messages":` + string(messages) + `,"tools":` + string(tools) + "}"

	var b strings.Builder
	last := byte(0)
	got := chat.Walk(r, func(kind byte, text string) {
		if !strings.ContainsRune("}]", rune(kind)) && !strings.ContainsRune("\x00{[:", rune(last)) {
			b.WriteByte(',')
		}
		switch last = kind; kind {
		case '=':
			b.WriteString(text)
		case '"', '!', ':':
			require.True(t, utf8.ValidString(text))
			quoted, err := json.Marshal(text)
			require.NoError(t, err)
			b.Write(quoted)
			if kind == ':' {
				b.WriteByte(':')
			}
		default:
			require.Empty(t, text)
			b.WriteByte(kind)
		}
	}, &walked)
	require.Empty(t, cmp.Diff(append(losses, more...), got))
	require.Equal(t, at, again)
	if b.String() != want { // encoding/json escapes more than AppendMessages
		require.JSONEq(t, want, b.String())
	}
}

// TestWalkCaptures walks the requests of real clients.
func TestWalkCaptures(t *testing.T) {
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(root, "captures", "*", "*.json"))
	if len(files) == 0 {
		t.Skip("test data not there (set WEFT_SHARED)")
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		var c struct {
			Path string
			Body json.RawMessage
		}
		require.NoError(t, json.Unmarshal(data, &c), f)
		read := 0
		for _, api := range []string{"chat", "responses", "messages"} {
			a, _ := wire.Lookup(api)
			r, err := a.Decode(c.Body, nil)
			if err != nil {
				continue
			}
			read++
			requireWalk(t, r, nil)
			requireWalk(t, r, &chat.RenderOptions{Arguments: chat.ArgumentsObject, System: chat.SystemAsUser, TextOnly: true})
			requireWalk(t, r, &chat.RenderOptions{ReasoningSegments: true, Arguments: chat.ArgumentsRespelled, System: chat.SystemMerge, KeepDeveloper: true})
		}
		require.Positive(t, read, f)
	}
}

func ExampleWalk() {
	r, err := chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"say \"hi\"","seed":[1]}]}`), nil)
	if err != nil {
		panic(err)
	}
	chat.Walk(r, func(kind byte, text string) {
		if text != "" {
			os.Stdout.WriteString(text)
		} else {
			os.Stdout.Write([]byte{kind})
		}
		os.Stdout.WriteString(" ")
	}, nil)
	// Output: { messages [ { role user content say "hi" seed [1] } ] tools [ ] }
}
