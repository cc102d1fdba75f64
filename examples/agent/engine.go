// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weft-go/weft/protocols/sse"
)

// An engine is a server that completes raw text: vLLM, SGLang, llama.cpp's server, or Ollama with a model whose
// template is only the prompt.
type engine struct {
	url       string // without /v1
	model     string // "" means the server's default
	maxTokens int    // per turn
	client    *http.Client
}

// complete sends prompt to the engine and calls each with each piece of output as it arrives. finish is the engine's
// finish reason, such as stop or length.
func (e *engine) complete(ctx context.Context, prompt string, each func(text []byte) error) (finish string, err error) {
	body, err := json.Marshal(map[string]any{
		"model": e.model, "prompt": prompt, "stream": true, "max_tokens": e.maxTokens,
		"skip_special_tokens": false, // call markers may be special tokens, which the parser needs
		// No "stop": with stop strings, engines hold back the last characters and thus the ends of calls.
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // only for the error text
		return "", fmt.Errorf("engine: %s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	events := sse.Reader{FlushAtEOF: true}
	for ev, err := range events.Events(resp.Body) {
		switch {
		case err != nil && finish != "": // the output is complete
			return finish, nil
		case err != nil:
			return "", fmt.Errorf("read stream: %w", err)
		case ev.Comment || ev.Done():
			continue
		}
		var chunk struct {
			Choices []struct {
				Text         string
				FinishReason string `json:"finish_reason"`
			}
			Error *struct{ Message string }
		}
		if err := json.Unmarshal(ev.Data, &chunk); err != nil {
			return "", fmt.Errorf("chunk %.100q: %w", ev.Data, err)
		}
		if chunk.Error != nil {
			return "", fmt.Errorf("engine: %s", chunk.Error.Message)
		}
		for _, c := range chunk.Choices {
			if err := each([]byte(c.Text)); err != nil {
				return "", err
			}
			if c.FinishReason != "" {
				finish = c.FinishReason
			}
		}
	}
	switch finish {
	case "":
		return "", errors.New("read stream: no finish reason")
	case "abort":
		return "", errors.New("engine: request aborted")
	}
	return finish, nil
}
