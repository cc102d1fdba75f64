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
	Model       string       `json:"model,omitempty"`
	MaxTokens   int64        `json:"max_tokens,omitempty"`
	Stream      bool         `json:"stream,omitempty"`
	Temperature *float64     `json:"temperature,omitempty"`
	TopP        *float64     `json:"top_p,omitempty"`
	TopK        *int64       `json:"top_k,omitempty"`
	Stop        []string     `json:"stop_sequences,omitempty"`
	System      []stdBlock   `json:"system,omitempty"`
	Messages    []stdMessage `json:"messages,omitempty"`
	Tools       []struct {
		Name         string          `json:"name,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"input_schema,omitempty"`
		CacheControl *stdCache       `json:"cache_control,omitempty"`
	} `json:"tools,omitempty"`
	Thinking *struct {
		Type   string `json:"type,omitempty"`
		Budget int64  `json:"budget_tokens,omitempty"`
	} `json:"thinking,omitempty"`
	Metadata struct {
		UserID string `json:"user_id,omitempty"`
	} `json:"metadata,omitempty"`
}

type stdMessage struct {
	Role    string     `json:"role,omitempty"`
	Content []stdBlock `json:"content,omitempty"`
}

type stdBlock struct {
	Type         string          `json:"type,omitempty"`
	Text         string          `json:"text,omitempty"`
	Thinking     string          `json:"thinking,omitempty"`
	Signature    string          `json:"signature,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Content      []stdBlock      `json:"content,omitempty"`
	CacheControl *stdCache       `json:"cache_control,omitempty"`
}

type stdCache struct {
	Type string `json:"type,omitempty"`
	TTL  string `json:"ttl,omitempty"`
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

// BenchmarkEncodeAnew writes a request without its bytes, beside encoding/json from structs.
func BenchmarkEncodeAnew(b *testing.B) {
	body := largeRequest(b)
	b.Run("encoder=weft", func(b *testing.B) {
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
			if dst, err = r.Encode(dst[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoder=encoding-json", func(b *testing.B) {
		var r stdRequest
		if err := json.Unmarshal(body, &r); err != nil {
			b.Fatal(err)
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			buf.Reset()
			if err := enc.Encode(&r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDetach takes a decoded request off its bytes, decoding included.
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
		if dst, err = r.Encode(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
