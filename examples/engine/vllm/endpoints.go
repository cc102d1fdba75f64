// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"encoding/json"
	"net/http"
)

func (e *Engine) routes() *http.ServeMux {
	m := http.NewServeMux()
	m.HandleFunc("POST /v1/completions", e.completions)
	m.HandleFunc("GET /v1/models", e.models)
	m.HandleFunc("GET /metrics", e.metrics)
	m.HandleFunc("GET /kv_events", e.kvEvents)
	m.HandleFunc("POST /tokenize", e.tokenize)
	m.HandleFunc("POST /detokenize", e.detokenize)
	m.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {}) // 200, no body
	m.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"version": "embedded"})
	})
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&apiError{http.StatusNotFound, "NotFoundError", "", "no " + r.Method + " " + r.URL.Path}).write(w)
	})
	return m
}

func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	list := []any{map[string]any{
		"id": e.opt.Model, "object": "model", "created": 0, "owned_by": "weft", "root": e.opt.Model, "parent": nil,
		"max_model_len": e.opt.MaxModelLen,
	}}
	for _, name := range e.opt.Adapters {
		list = append(list, map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "weft", "root": name, "parent": e.opt.Model})
	}
	writeJSON(w, map[string]any{"object": "list", "data": list})
}

func (e *Engine) tokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Prompt *string `json:"prompt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		badRequest("", "%v", err).write(w)
		return
	}
	if req.Prompt == nil {
		badRequest("prompt", "prompt is missing; messages are not offered").write(w)
		return
	}
	ids := e.tok.AppendEncode([]uint32{}, *req.Prompt)
	writeJSON(w, map[string]any{"count": len(ids), "max_model_len": e.opt.MaxModelLen, "tokens": ids, "token_strs": nil})
}

func (e *Engine) detokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Tokens []uint32 `json:"tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		badRequest("tokens", "%v", err).write(w)
		return
	}
	for _, id := range req.Tokens {
		if int64(id) >= int64(e.tok.VocabSize()) {
			badRequest("tokens", "Token id %d is out of vocabulary", id).write(w)
			return
		}
	}
	writeJSON(w, map[string]string{"prompt": string(e.tok.AppendDecode(nil, req.Tokens, false))})
}
