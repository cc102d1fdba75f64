// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-go/weft/tokenizers/chat"
)

// shared is the folder with data that is not part of the project.
func shared() string {
	if dir := os.Getenv("WEFT_SHARED"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared")
}

var now = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

// asIs is what transformers does.
func asIs() *chat.Options {
	return &chat.Options{
		SpecialTokens: map[string]string{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
		Now:           func() time.Time { return now },
		Arguments:     chat.ArgumentsAsIs, Messages: chat.MessagesAsIs,
	}
}

// lines calls f for each line of a file of JSON lines.
func lines[T any](tb testing.TB, file string, f func(T)) {
	tb.Helper()
	r, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			tb.Fatal(err)
		}
		f(v)
	}
}

type conversation struct {
	Name, Template             string
	Messages, Tools, Documents json.RawMessage
	Kwargs                     json.RawMessage
	AddGenerationPrompt        bool `json:"add_generation_prompt"`
	ContinueFinalMessage       bool `json:"continue_final_message"`
}

func (c *conversation) request() chat.Request {
	return chat.Request{
		Messages: c.Messages, Tools: c.Tools, Kwargs: c.Kwargs, Documents: c.Documents,
		AddGenerationPrompt: c.AddGenerationPrompt, ContinueFinalMessage: c.ContinueFinalMessage,
	}
}

func conversations(tb testing.TB) map[string]conversation {
	all := map[string]conversation{}
	lines(tb, "testdata/conversations.jsonl", func(c conversation) { all[c.Name] = c })
	return all
}

// TestJinjaGolden renders what jinja2 3.1.6 rendered under the settings of transformers: see testdata/gen/golden.py.
func TestJinjaGolden(t *testing.T) {
	talks := conversations(t)
	templates := map[string]*chat.Jinja{}
	skipped := 0
	type golden struct {
		Template, Conversation, Text, SHA256 string
		Len                                  int
		Error                                bool
		Generations                          [][2]int
	}
	lines(t, "testdata/jinja.jsonl", func(g golden) {
		tpl := templates[g.Template]
		if tpl == nil {
			file := filepath.Join("testdata", "templates", g.Template)
			if strings.HasPrefix(g.Template, "tok/") {
				file = filepath.Join(shared(), g.Template)
			}
			src, err := os.ReadFile(file)
			if err != nil && g.SHA256+g.Text != "" && strings.HasPrefix(g.Template, "tok/") || err != nil && g.Error {
				skipped++
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tpl, err = chat.Compile(g.Template, string(src), asIs()); err != nil {
				t.Fatal(err)
			}
			templates[g.Template] = tpl
		}
		talk, ok := talks[g.Conversation]
		if !ok {
			t.Fatal("no conversation", g.Conversation)
		}
		t.Run(g.Template+"/"+g.Conversation, func(t *testing.T) {
			p, err := tpl.Render(talk.request())
			if g.Error {
				if e, ok := errors.AsType[*chat.Error](err); !ok || e.Reason == "" {
					t.Errorf("got %v, %v; want an error", p, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256([]byte(p.Text)); g.SHA256 != "" && (len(p.Text) != g.Len || hex.EncodeToString(sum[:]) != g.SHA256) {
				t.Errorf("%d bytes, want %d, or others:\n%s", len(p.Text), g.Len, p.Text)
			} else if g.SHA256 == "" && p.Text != g.Text {
				t.Errorf("got\n%s\nwant\n%s", p.Text, g.Text)
			}
			checkPrompt(t, p)
			if g.Generations != nil {
				var got [][2]int
				for _, r := range p.Generations {
					got = append(got, [2]int{r.Start, r.End})
				}
				if !slices.Equal(got, g.Generations) {
					t.Errorf("generations %v, want %v", got, g.Generations)
				}
			}
		})
	})
	if skipped > 0 {
		t.Logf("%d goldens need templates that are not here", skipped)
	}
}
