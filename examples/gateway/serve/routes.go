// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
)

// routes returns the gateway's endpoints. Methods are checked by hand, because a wrong one needs the API's own error.
func (g *Gateway) routes() *http.ServeMux {
	m := http.NewServeMux()
	for _, a := range apis {
		m.HandleFunc(a.path, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				g.answer(w, r, a)
			case a.api == block.Responses && strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
				w.Header().Set("Upgrade", "HTTP/1.1")
				g.refuse(w, r, a, &apierr.Error{Why: event.Invalid, Status: http.StatusUpgradeRequired, Message: "Use POST: this server has no WebSocket."})
			default:
				w.Header().Set("Allow", http.MethodPost)
				g.refuse(w, r, a, &apierr.Error{Why: event.Invalid, Code: apierr.CodeMethodNotAllowed, Message: "Use POST " + a.path + "."})
			}
		})
	}
	m.HandleFunc("POST /v1/messages/count_tokens", g.countTokens)
	m.HandleFunc("GET /v1/models", g.models)
	m.HandleFunc("GET /v1/models/{id...}", g.model)
	m.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {}) // some clients probe with HEAD /
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, r, apiOf(r), apierr.RouteNotFound(r.Method, r.URL.Path))
	})
	return m
}

// apiOf returns the API whose error form a request outside the three endpoints expects.
func apiOf(r *http.Request) *api {
	if r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages") {
		return messagesAPI
	}
	return chatAPI
}

type modelObject map[string]any

// modelObject describes the model under one of its names, in the form of the API that asks.
func (g *Gateway) modelObject(a *api, name string) modelObject {
	if a == messagesAPI {
		return modelObject{"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
	}
	return modelObject{"id": name, "object": "model", "created": 0, "owned_by": "weft"}
}

func (g *Gateway) models(w http.ResponseWriter, r *http.Request) {
	a := apiOf(r)
	names := append([]string{g.opt.Model}, g.opt.Aliases...)
	data := make([]modelObject, len(names))
	for i, n := range names {
		data[i] = g.modelObject(a, n)
	}
	if a == messagesAPI {
		writeJSON(w, map[string]any{"data": data, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]})
		return
	}
	writeJSON(w, map[string]any{"object": "list", "data": data})
}

func (g *Gateway) model(w http.ResponseWriter, r *http.Request) {
	a, id := apiOf(r), r.PathValue("id")
	if !g.knows(id) {
		g.refuse(w, r, a, apierr.ModelNotFound(id))
		return
	}
	writeJSON(w, g.modelObject(a, id))
}

// countTokens answers how long the prompt of a messages request is, rendered exactly as it would be sent.
func (g *Gateway) countTokens(w http.ResponseWriter, r *http.Request) {
	c := &call{g: g, api: messagesAPI, id: g.requestID(w, r, messagesAPI)}
	if err := c.read(w, r); err != nil {
		g.refuse(w, r, c.api, err)
		return
	}
	writeJSON(w, map[string]int{"input_tokens": len(c.prompt)})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // what we answer with always encodes; a broken connection has no reader
}
