// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/replay"
)

func key(n byte) []byte { return bytes.Repeat([]byte{n}, replay.KeySize) }

func newSigner(t testing.TB, key []byte, o *replay.SignerOptions) *replay.Signer {
	c, err := replay.NewSigner(key, o)
	require.NoError(t, err)
	return c
}

func sealed(t testing.TB, c *replay.Signer, text string) string {
	token, ok := c.AppendSealed(nil, []byte(text))
	require.True(t, ok)
	return string(token)
}

func signed(c *replay.Signer, text string) string { return string(c.AppendSigned(nil, []byte(text))) }

func TestNewSigner(t *testing.T) {
	for _, k := range [][]byte{nil, {}, key(1)[1:]} {
		_, err := replay.NewSigner(k, nil)
		require.EqualError(t, err, fmt.Sprintf("replay: new signer: key has %d bytes, want at least 32", len(k)))
	}
	_, err := replay.NewSigner(key(1), &replay.SignerOptions{Old: [][]byte{key(2), nil}})
	require.EqualError(t, err, "replay: new signer: key has 0 bytes, want at least 32", "an old key that is too short")
	_, err = replay.NewSigner(key(1), &replay.SignerOptions{Old: make([][]byte, 17)})
	require.EqualError(t, err, "replay: new signer: 17 old keys, want at most 16")

	k := key(1)
	c := newSigner(t, k, nil)
	before := signed(c, "text")
	clear(k)
	require.Equal(t, before, signed(c, "text"), "the key is not kept")
	require.NotContains(t, fmt.Sprintf("%+v %#v", c, c), fmt.Sprintf("%v", key(1)))
}

// TestVerdicts opens every kind of token with every kind of Signer.
func TestVerdicts(t *testing.T) {
	const text = "The user wants 7."
	var none *replay.Signer
	c := newSigner(t, key(1), nil)
	rotated := newSigner(t, key(2), &replay.SignerOptions{Old: [][]byte{key(3), key(1)}})
	other := newSigner(t, key(2), nil)
	small := newSigner(t, key(1), &replay.SignerOptions{MaxSealed: len(text) - 1})
	long := strings.Repeat("tenant", 100)

	sig, box, free := signed(c, text), sealed(t, c, text), signed(none, text)
	_, head, _ := strings.Cut(sig, ".")
	for _, tc := range []struct {
		name        string
		c           *replay.Signer
		token, text string
		original    string
		want        replay.Verdict
	}{
		{"signed", c, sig, text, text, replay.Intact},
		{"sealed, nothing shown", c, box, "", text, replay.Intact},
		{"sealed, a summary shown", c, box, "7, then.", text, replay.Intact},
		{"unsigned, without a key", none, free, text, text, replay.Intact},

		{"no signature", c, "", text, text, replay.Foreign},
		{"Anthropic's", c, "EqQBCkYIARgCIkA/+==", text, text, replay.Foreign},
		{"Dynamo's", c, "erased", text, text, replay.Foreign},
		{"the form before this one", c, "weft2.3.n3511m", text, text, replay.Foreign},
		{"our other prefix", c, "weft1c.t0." + sig, text, text, replay.Foreign},

		{"text edited", c, sig, "The user wants 8.", "", replay.Forged},
		{"text longer", c, sig, text + " ", "", replay.Forged},
		{"text shorter", c, sig, text[1:], "", replay.Forged},
		{"unsigned, text edited", c, free, "The user wants 8.", "", replay.Forged},
		{"unsigned, text edited, without a key", none, free, "The user wants 8.", "", replay.Forged},
		{"token of another text", c, signed(c, "The user wants 8."), text, "", replay.Forged},
		{"token truncated", c, sig[:len(sig)-1], text, "", replay.Forged},
		{"token longer", c, sig + "A", text, "", replay.Forged},
		{"token of a prefix alone", c, "weft3.", text, "", replay.Forged},
		{"no such form", c, "weft3.z" + head[1:], text, "", replay.Forged},
		{"sealed truncated", c, box[:len(box)-4], "", "", replay.Forged},
		{"sealed with a line break", c, box[:len(box)-1] + "\n", "", "", replay.Forged},
		{"sealed with another length", c, strings.Replace(box, ".h.", ".g.", 1), "", "", replay.Forged},
		{"signed as sealed", c, strings.Replace(sig, "weft3.s", "weft3.e", 1), text, "", replay.Forged},
		{"length spelled otherwise", c, strings.Replace(sig, ".h.", ".0h.", 1), text, "", replay.Forged},
		{"length in capitals", c, strings.Replace(sig, ".h.", ".H.", 1), text, "", replay.Forged},
		{"length beyond all", c, strings.Replace(sig, ".h.", ".zzzzzzzzzzzzz.", 1), text, "", replay.Forged},
		{"another context", c.With("b"), sig, text, "", replay.Forged},
		{"another context, sealed", c.With("b"), box, "", "", replay.Forged},
		{"the same context", c.With("b"), signed(c.With("b"), text), text, text, replay.Intact},
		{"the same long context", c.With(long), signed(newSigner(t, key(1), nil).With(long), text), text, text, replay.Intact},
		{"another long context", c.With(long + "x"), signed(c.With(long), text), text, "", replay.Forged},
		{"context and text cut elsewhere", c.With("bT"), signed(c.With("b"), "Text"), "ext ", "", replay.Forged},

		{"rotated", rotated, sig, text, text, replay.Intact},
		{"rotated, sealed", rotated, box, "", text, replay.Intact},
		{"rotated, edited", rotated, sig, "The user wants 8.", "", replay.Forged},
		{"key unknown", other, sig, text, text, replay.Unverified},
		{"key unknown, length wrong", other, sig, text + "!", "", replay.Forged},
		{"key unknown, sealed", other, box, "shown", "shown", replay.Unverified},
		{"no key", none, sig, text, text, replay.Unverified},
		{"no key, sealed", none, box, "", "", replay.Unverified},
		{"unsigned, to one with a key", c, free, text, text, replay.Unverified},
		{"sealed beyond the limit", small, box, "", "", replay.Unverified},

		{"text taken out", c, sig, "", "", replay.Absent},
		{"text taken out, key unknown", other, sig, "", "", replay.Absent},
		{"signature of nothing", c, signed(c, ""), "", "", replay.Intact},
		{"nothing sealed", c, sealed(t, c, ""), "", "", replay.Intact},
	} {
		t.Run(tc.name, func(t *testing.T) {
			original, v := tc.c.Open(tc.token, tc.text)
			require.Equal(t, tc.want, v)
			require.Equal(t, tc.original, original)
		})
	}
	require.Equal(t, "forged", replay.Forged.String())
	require.Equal(t, "verdict(9)", replay.Verdict(9).String())
}

// TestTokenBytes checks the format, which must not change without a new version, because tokens are stored with
// conversations.
func TestTokenBytes(t *testing.T) {
	c := newSigner(t, key(1), nil)
	require.Equal(t, "weft3.u.2.KH_m1A", signed(nil, "hi"))
	require.Equal(t, "weft3.sl4vDSg.2.1LiHr-ivzrazcJS5g6nxx1De2iqJp6ZxoXYfppW2AIw", signed(c, "hi"))
	require.Equal(t, "weft3.el4vDSg.2.9--LvN38X3izENO8_7ckm-TK0gF_V2duVR_YgNAB", sealed(t, c, "hi"))
	require.Equal(t, sealed(t, c, "hi"), sealed(t, c, "hi"), "the same text, the same token")
	require.NotEqual(t, sealed(t, c, "hi")[:24], sealed(t, c.With("b"), "hi")[:24])
	for _, token := range []string{signed(nil, "x"), signed(c, "x"), sealed(t, c, "\xff\x00")} {
		require.Regexp(t, regexp.MustCompile(`^[A-Za-z0-9._-]+$`), token)
	}
}

// TestEveryChange tests that no token with one character changed, left out or added is intact.
func TestEveryChange(t *testing.T) {
	c := newSigner(t, key(1), nil)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.\n=+/"
	for _, token := range []string{signed(c, "text"), sealed(t, c, "text")} {
		for i := range token {
			for _, b := range []byte(alphabet) {
				for _, other := range []string{token[:i] + string(b) + token[i+1:], token[:i] + string(b) + token[i:], token[:i] + token[i+1:]} {
					if other == token {
						continue
					}
					if _, v := c.Open(other, "text"); v == replay.Intact {
						t.Fatalf("%q is taken for %q", other, token)
					}
				}
			}
		}
	}
}

func TestSealLimit(t *testing.T) {
	c := newSigner(t, key(1), &replay.SignerOptions{MaxSealed: 4})
	require.Equal(t, 4, c.MaxSealed())
	require.NotEmpty(t, sealed(t, c, "four"))
	dst, ok := c.AppendSealed([]byte("kept"), []byte("fives"))
	require.False(t, ok)
	require.Equal(t, "kept", string(dst))
	require.Equal(t, 1<<20, newSigner(t, key(1), nil).MaxSealed())
	require.Equal(t, 1<<30, newSigner(t, key(1), &replay.SignerOptions{MaxSealed: 1<<31 - 1}).MaxSealed())
	_, ok = (*replay.Signer)(nil).AppendSealed(nil, nil)
	require.False(t, ok)
	require.Zero(t, (*replay.Signer)(nil).MaxSealed())
	require.Nil(t, (*replay.Signer)(nil).With("x"))
}

// TestPieces tests that a token does not depend on how the text is split, and that a TokenWriter can be reused after
// Reset.
func TestPieces(t *testing.T) {
	keyed := newSigner(t, key(1), &replay.SignerOptions{MaxSealed: 600}).With("tenant")
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]*replay.Signer{nil, keyed, keyed.With(strings.Repeat("c", 300))}).Draw(t, "signer")
		seal := rapid.Bool().Draw(t, "seal")
		s := c.NewWriter(seal)
		for range rapid.IntRange(1, 3).Draw(t, "texts") {
			single := rapid.Bool().Draw(t, "bytes")
			text := rapid.SliceOfN(rapid.Byte(), 0, 1200).Draw(t, "text")
			for rest := text; len(rest) > 0; {
				n := 1
				if !single {
					n = rapid.IntRange(1, len(rest)).Draw(t, "piece")
				}
				s.Write(rest[:n])
				if rest = rest[n:]; len(rest)%100 == 50 {
					s.AppendToken(nil) // a call before the end of the text has no effect
				}
			}
			want := c.AppendSigned(nil, text)
			if box, ok := c.AppendSealed(nil, text); seal && ok {
				want = box
			}
			if got := s.AppendToken([]byte("x")); string(got) != "x"+string(want) {
				t.Fatalf("%s, whole %s", got, want)
			}
			if original, v := c.Open(string(want), string(text)); v != replay.Intact || original != string(text) {
				t.Fatal(v)
			}
			if s.Sealed() {
				if original, v := c.Open(string(want), ""); v != replay.Intact || original != string(text) {
					t.Fatal(v)
				}
			} else if _, v := c.Open(string(want), ""); len(text) > 0 && v != replay.Absent {
				t.Fatal(v)
			}
			s.Reset()
		}
	})
}

// TestSignerBound tests that a TokenWriter does not retain a text that is too long to be sealed.
func TestSignerBound(t *testing.T) {
	c := newSigner(t, key(1), &replay.SignerOptions{MaxSealed: 1000})
	s := c.NewWriter(true)
	piece := bytes.Repeat([]byte("x"), 100)
	for range 10 {
		s.Write(piece)
	}
	require.True(t, s.Sealed())
	s.Write(piece[:1])
	require.False(t, s.Sealed())
	require.Less(t, len(s.AppendToken(nil)), 70)
	if !race.Enabled {
		require.Zero(t, testing.AllocsPerRun(1000, func() { s.Write(piece) }))
	}
}

func TestSignerConcurrent(t *testing.T) {
	c := newSigner(t, key(1), &replay.SignerOptions{Old: [][]byte{key(2)}})
	old := newSigner(t, key(2), nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			mine := c.With(fmt.Sprint("tenant", g%3))
			for i := range 200 {
				text := strings.Repeat(fmt.Sprint(g, i), i)
				if _, v := mine.Open(signed(mine, text), text); v != replay.Intact {
					t.Error(v)
				}
				if original, v := mine.Open(sealed(t, mine, text), ""); v != replay.Intact || original != text {
					t.Error(v)
				}
				if _, v := c.Open(signed(old, text), text); v != replay.Intact {
					t.Error(v)
				}
			}
		})
	}
	wg.Wait()
}

func TestSignerAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates, and pools forget")
	}
	c := newSigner(t, key(1), nil).With("tenant")
	text := strings.Repeat("so the file must be there. ", 400)
	raw := []byte(text)
	token := signed(c, text)
	dst := make([]byte, 0, 100)
	require.Zero(t, testing.AllocsPerRun(200, func() { c.Open(token, text) }), "verify")
	require.Zero(t, testing.AllocsPerRun(200, func() { dst = c.AppendSigned(dst[:0], raw) }), "sign")
	s := c.NewWriter(false)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		for i := 0; i < len(raw); i += 5 {
			s.Write(raw[i:min(i+5, len(raw))])
		}
		dst = s.AppendToken(dst[:0])
		s.Reset()
	}), "sign a stream")
	box := sealed(t, c, text)
	require.LessOrEqual(t, testing.AllocsPerRun(200, func() { c.Open(box, "") }), 4.0, "open")
}

func FuzzSignerOpen(f *testing.F) {
	c := newSigner(f, key(1), nil)
	f.Add(signed(c, "text"), "text")
	f.Add(sealed(f, c, "text"), "")
	f.Add(signed(nil, "text"), "text")
	f.Add("weft3.e"+strings.Repeat("A", 6)+".zzzzzz."+base64.RawURLEncoding.EncodeToString(key(1)), "x")
	f.Fuzz(func(t *testing.T, token, text string) {
		for _, c := range []*replay.Signer{c, nil} {
			original, v := c.Open(token, text)
			switch v {
			case replay.Foreign:
				require.False(t, strings.HasPrefix(token, "weft3."))
				require.Equal(t, text, original)
			case replay.Intact: // then it must equal the token that we create
				if token != signed(c, original) {
					require.Equal(t, sealed(t, c, original), token)
				} else {
					require.Equal(t, text, original)
				}
			case replay.Unverified:
				require.Equal(t, text, original)
			default:
				require.Empty(t, original)
			}
		}
	})
}
func BenchmarkSigner(b *testing.B) {
	c := newSigner(b, key(1), nil)
	text := []byte(strings.Repeat("so the file must be there. ", 400))
	b.Run("op=delta", func(b *testing.B) {
		s := c.NewWriter(false)
		for b.Loop() {
			s.Write(text[:5])
		}
	})
	b.Run("op=sign/bytes=10800", func(b *testing.B) {
		dst := make([]byte, 0, 100)
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			dst = c.AppendSigned(dst[:0], text)
		}
	})
	b.Run("op=verify/bytes=10800", func(b *testing.B) {
		token, shown := signed(c, string(text)), string(text)
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			c.Open(token, shown)
		}
	})
	b.Run("op=seal/bytes=10800", func(b *testing.B) {
		dst := make([]byte, 0, 20000)
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			dst, _ = c.AppendSealed(dst[:0], text)
		}
	})
	b.Run("op=open/bytes=10800", func(b *testing.B) {
		token := sealed(b, c, string(text))
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			c.Open(token, "")
		}
	})
	b.Run("op=with", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.With("tenant")
		}
	})
}
