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

// An engine is a server that completes raw text: vLLM, SGLang, llama.cpp's server, and Ollama for a model whose template is
// nothing but the prompt.
type engine struct {
	url       string // without /v1
	model     string // "" lets the server choose
	maxTokens int    // of one turn
	client    *http.Client
}

// complete lets the model go on from prompt and hands over each piece of its output as it arrives, until it ends. finish
// is the engine's reason, such as stop or length.
func (e *engine) complete(ctx context.Context, prompt string, each func(text []byte) error) (finish string, err error) {
	body, err := json.Marshal(map[string]any{
		"model": e.model, "prompt": prompt, "stream": true, "max_tokens": e.maxTokens,
		"skip_special_tokens": false, // in some vocabularies the markers of calls are special; the parser needs them
		// No "stop": to watch for it the engine would hold back the last characters, and with them the ends of calls.
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
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // for the message only
		return "", fmt.Errorf("the engine says: %s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	events := sse.Reader{FlushAtEOF: true}
	for ev, err := range events.Events(resp.Body) {
		switch {
		case err != nil && finish != "": // the answer is whole
			return finish, nil
		case err != nil:
			return "", fmt.Errorf("the stream broke: %w", err)
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
			return "", fmt.Errorf("the engine failed: %s", chunk.Error.Message)
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
		return "", errors.New("the stream broke: it ended without a finish reason")
	case "abort":
		return "", errors.New("the engine aborted the answer")
	}
	return finish, nil
}
