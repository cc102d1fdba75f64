// SPDX-License-Identifier: Apache-2.0

package main

import "encoding/json"

// The structs as one would declare them for encoding/json: one struct for all blocks.

type request struct {
	Model       string    `json:"model,omitempty"`
	MaxTokens   int64     `json:"max_tokens,omitempty"`
	Stream      bool      `json:"stream,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"top_p,omitempty"`
	TopK        *int64    `json:"top_k,omitempty"`
	Stop        []string  `json:"stop_sequences,omitempty"`
	System      []content `json:"system,omitempty"`
	Messages    []message `json:"messages,omitempty"`
	Tools       []struct {
		Name         string          `json:"name,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"input_schema,omitempty"`
		CacheControl *cache          `json:"cache_control,omitempty"`
	} `json:"tools,omitempty"`
	Thinking *struct {
		Type   string `json:"type,omitempty"`
		Budget int64  `json:"budget_tokens,omitempty"`
	} `json:"thinking,omitempty"`
	Metadata struct {
		UserID string `json:"user_id,omitempty"`
	} `json:"metadata,omitempty"`
}

type message struct {
	Role    string    `json:"role,omitempty"`
	Content []content `json:"content,omitempty"`
}

type content struct {
	Type         string          `json:"type,omitempty"`
	Text         string          `json:"text,omitempty"`
	Thinking     string          `json:"thinking,omitempty"`
	Signature    string          `json:"signature,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Content      []content       `json:"content,omitempty"`
	CacheControl *cache          `json:"cache_control,omitempty"`
}

type cache struct {
	Type string `json:"type,omitempty"`
	TTL  string `json:"ttl,omitempty"`
}

type chunk struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Role             string `json:"role"`
			Content          string `json:"content"`
			ReasoningContent string `json:"reasoning_content"`
			Refusal          string `json:"refusal"`
			ToolCalls        []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
}

type messagesDelta struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		PartialJSON string `json:"partial_json"`
		Signature   string `json:"signature"`
	} `json:"delta"`
}

type responsesDelta struct {
	Type           string            `json:"type"`
	SequenceNumber int64             `json:"sequence_number"`
	ItemID         string            `json:"item_id"`
	OutputIndex    int               `json:"output_index"`
	ContentIndex   int               `json:"content_index"`
	Delta          string            `json:"delta"`
	Logprobs       []json.RawMessage `json:"logprobs"`
}
