// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-go/weft/protocols/messages"
)

func largeRequest(tb testing.TB) []byte {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	body, err := os.ReadFile(filepath.Join(dir, "bench", "protocols", "anthropic_request.json"))
	if err != nil {
		tb.Skip("no large request: set WEFT_SHARED to the directory of shared test data")
	}
	return body
}

// internal/bench/cmd/protocols runs encoding/json on the same data.

func BenchmarkDecode(b *testing.B) {
	body := largeRequest(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := messages.Decode(body, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	body := largeRequest(b)
	r, err := messages.Decode(bytes.Clone(body), nil)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if dst, err = r.AppendBody(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodeConverted encodes a detached request.
func BenchmarkEncodeConverted(b *testing.B) {
	body := largeRequest(b)
	r, err := messages.Decode(bytes.Clone(body), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Detach(); err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if dst, err = r.AppendBody(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDetach decodes and detaches a request.
func BenchmarkDetach(b *testing.B) {
	body := largeRequest(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, err := messages.Decode(body, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Detach(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEdit(b *testing.B) {
	body := largeRequest(b)
	var dst []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, err := messages.Decode(body, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.SetText(r.Turns()[0].Blocks[0].At, "You are another agent."); err != nil {
			b.Fatal(err)
		}
		if dst, err = r.AppendBody(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
