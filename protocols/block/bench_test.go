// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-go/weft/protocols/messages"
)

// stdRequest is a Messages request as one would declare it for encoding/json: one struct for all blocks.
type stdRequest struct {
	Model       string       `json:"model"`
	MaxTokens   int64        `json:"max_tokens"`
	Stream      bool         `json:"stream"`
	Temperature *float64     `json:"temperature"`
	TopP        *float64     `json:"top_p"`
	TopK        *int64       `json:"top_k"`
	Stop        []string     `json:"stop_sequences"`
	System      []stdBlock   `json:"system"`
	Messages    []stdMessage `json:"messages"`
	Tools       []struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl *stdCache       `json:"cache_control"`
	} `json:"tools"`
	Thinking *struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	} `json:"thinking"`
	Metadata struct {
		UserID string `json:"user_id"`
	} `json:"metadata"`
}

type stdMessage struct {
	Role    string     `json:"role"`
	Content []stdBlock `json:"content"`
}

type stdBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	IsError      bool            `json:"is_error"`
	Content      []stdBlock      `json:"content"`
	CacheControl *stdCache       `json:"cache_control"`
}

type stdCache struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

func largeRequest(tb testing.TB) []byte {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	body, err := os.ReadFile(filepath.Join(dir, "bench", "protocols", "anthropic_request.json"))
	if err != nil {
		tb.Skip("no large request: set WEFT_SHARED to the folder of shared test data")
	}
	return body
}

func BenchmarkDecode(b *testing.B) {
	body := largeRequest(b)
	b.Run("decoder=weft", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := messages.Decode(body, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decoder=encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var r stdRequest
			if err := json.Unmarshal(body, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
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
		if dst, err = r.Encode(dst[:0]); err != nil {
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
		if dst, err = r.Encode(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
