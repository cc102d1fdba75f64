// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
)

// This file defines the common form for comparing the content that an SDK received with the expected content, which
// want_test.go derives.

// A piece is one block of a response.
type piece struct {
	Kind      string // reasoning, text, refusal, call, custom, wrapped, server, other
	Text      string // exact arguments for calls, JSON for others
	Name      string // of the tool
	Namespace string
	ID        string // of the call
	Status    string // of the item (responses)
	Signature string
	Notes     []string // annotations as JSON (not in chat)
	Cut       bool     // a call that was aborted after it had begun
}

// A choice is one of the responses.
type choice struct {
	Pieces []piece
	Finish string
	Stop   string   // stop sequence
	Tokens []string // of the log probabilities
	Notes  []string // annotations as JSON (chat)
}

// response is a response.
type response struct {
	ID, Model string
	Choices   []choice
	Usage     event.Tokens
}

func (c *choice) last(kind string) *piece {
	if n := len(c.Pieces); n > 0 && c.Pieces[n-1].Kind == kind {
		return &c.Pieces[n-1]
	}
	return nil
}

// add appends text to the last piece if it is of the kind, else to a new one.
func (c *choice) add(kind, text string) {
	if text == "" {
		return
	}
	if c.last(kind) == nil {
		c.Pieces = append(c.Pieces, piece{Kind: kind})
	}
	c.last(kind).Text += text
}

// joined returns the text of all pieces of one kind.
func (c *choice) joined(kind string) (s string) {
	for _, p := range c.Pieces {
		if p.Kind == kind {
			s += p.Text
		}
	}
	return s
}

// valid returns b with U+FFFD for what is not UTF-8, one for each maximal part of a character, as Unicode recommends.
func valid(b []byte) string {
	var out []byte
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			out = append(out, b[:n]...)
		} else {
			for n < len(b) && !utf8.FullRune(b[:n+1]) {
				n++
			}
			out = append(out, "\uFFFD"...)
		}
		b = b[n:]
	}
	return string(out)
}

// compare compares the received content with the expected content. got loses what cannot be foretold and was found in
// order: the ids that we made, and how an aborted call was made unreadable.
func compare(t require.TestingT, want, got response) {
	if len(want.Choices) == len(got.Choices) {
		for i := range want.Choices {
			w, g := &want.Choices[i], &got.Choices[i]
			ids := map[string]bool{}
			for k := range g.Pieces {
				if id := g.Pieces[k].ID; id != "" {
					require.False(t, ids[id], "call id %q was given twice", id)
					ids[id] = true
				}
			}
			if len(w.Pieces) == len(g.Pieces) {
				for k := range w.Pieces {
					comparePiece(t, &w.Pieces[k], &g.Pieces[k])
				}
			}
		}
	}
	require.Empty(t, cmp.Diff(want, got), "-want +got")
}

// minted replaces an id that the encoder made.
const minted = "(minted)"

// sealed, followed by a text, replaces a signature that the encoder made for that text.
const sealed = "(sealed)"

func comparePiece(t require.TestingT, w, g *piece) {
	if text, ok := strings.CutPrefix(w.Signature, sealed); ok {
		_, verdict := (*replay.Signer)(nil).Open(g.Signature, text)
		require.Equal(t, replay.Intact, verdict, "signature %q of %q", g.Signature, text)
		g.Signature = w.Signature
	}
	if w.ID == minted {
		require.NotEmpty(t, g.ID)
		g.ID = minted
	}
	if w.Kind == "wrapped" && (g.Kind == "call" || g.Kind == "server") { // free text, or a part of arguments, in the API that has only JSON
		g.Kind = w.Kind
		if !w.Cut {
			var in struct{ Input *string }
			require.NoError(t, json.Unmarshal([]byte(g.Text), &in), "%s", g.Text)
			require.NotNil(t, in.Input)
			g.Text = *in.Input
		}
	}
	if w.Cut {
		switch g.Kind {
		case "call", "server":
			require.True(t, strings.HasPrefix(g.Text, w.Text), "%q does not go on from %q", g.Text, w.Text)
			fallthrough
		case "wrapped":
			require.False(t, json.Valid([]byte(g.Text)), "an aborted call can be run with %q", g.Text)
			g.Text = w.Text
		}
		g.Cut = true
	}
}
