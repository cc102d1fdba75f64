// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/catalog"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

// routes returns the gateway's endpoints. The handlers check methods themselves, because a wrong method needs an error
// in the form of the API.
func (g *Gateway) routes() *http.ServeMux {
	m := http.NewServeMux()
	post := func(a *wire.API, path string, handle http.HandlerFunc) {
		m.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				handle(w, r)
			case path == wire.Responses.Path() && isUpgrade(r):
				g.connect(w, r)
			default:
				w.Header().Set("Allow", http.MethodPost)
				g.refuse(w, r, a, &apierr.Error{Why: event.Invalid, Code: "method_not_allowed", Message: "Use POST " + path + "."})
			}
		})
	}
	for _, a := range []*wire.API{wire.Chat, wire.Responses, wire.Messages, wire.Completions} {
		post(a, a.Path(), func(w http.ResponseWriter, r *http.Request) { g.respond(w, r, a) })
	}
	post(wire.Responses, compactPath, func(w http.ResponseWriter, r *http.Request) { g.respond(w, r, wire.Responses) })
	m.HandleFunc("/v1/responses/{id}", g.oneResponse)
	m.HandleFunc("GET /v1/responses/{id}/input_items", g.inputItems)
	post(wire.Completions, "/v1/embeddings", g.embed)
	post(wire.Messages, "/v1/messages/count_tokens", g.count(wire.Messages, messages.AppendTokenCount))
	post(wire.Responses, "/v1/responses/input_tokens", g.count(wire.Responses, responses.AppendTokenCount))
	for _, prefix := range []string{"/v1", ""} { // vLLM has both, by version
		post(wire.Chat, prefix+"/tokenize", g.convert((*call).tokenize))
		post(wire.Chat, prefix+"/detokenize", g.convert((*call).detokenize))
	}
	m.HandleFunc("GET /v1/models", g.known(g.listModels))
	m.HandleFunc("GET /v1/models/{$}", g.known(g.listModels))
	m.HandleFunc("GET /v1/models/{id...}", g.known(g.oneModel))
	m.HandleFunc("GET /version", g.known(func(w http.ResponseWriter, r *http.Request) {
		writeBody(w, []byte(`{"version":`+strconv.Quote(cmp.Or(g.opt.Version, "unknown"))+`}`))
	}))
	m.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("GET /ready", g.readiness)
	if g.opt.Metrics != nil {
		m.HandleFunc("GET /metrics", g.metrics)
	}
	m.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {}) // some clients probe with HEAD /
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, r, apiOf(r), &apierr.Error{Why: event.NotFound, Code: "unknown_url", Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
	})
	return m
}

// apiOf returns the API whose error form applies to a request outside the three endpoints.
func apiOf(r *http.Request) *wire.API {
	if strings.HasPrefix(r.URL.Path, "/v1/messages") || catalog.DetectStyle(r.Header.Get, r.URL.Query().Get) == catalog.Anthropic {
		return wire.Messages
	}
	return wire.Chat
}

// count returns a handler that returns the number of prompt tokens of a request, rendered exactly as it would be sent.
func (g *Gateway) count(a *wire.API, encode func(dst []byte, n int64) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := g.newCall(w, r, a)
		if err := c.admit(r); err != nil {
			g.refuse(w, r, a, err)
			return
		}
		defer c.release()
		if err := c.read(w, r); err != nil {
			g.refuse(w, r, a, err)
			return
		}
		n, err := c.backend.count(r.Context())
		if err != nil {
			g.refuse(w, r, a, err)
			return
		}
		writeBody(w, encode(nil, n))
	}
}

// known returns a handler for requests whose key is known.
func (g *Gateway) known(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.identify(r); err != nil {
			g.refuse(w, r, apiOf(r), err)
			return
		}
		handle(w, r)
	}
}

// readiness reports whether requests have a chance: the gateway is not draining, and an engine is not ejected. /health
// only reports that the process is alive. Clients that may see the metrics also get a line for each engine that contradicts
// the configuration.
func (g *Gateway) readiness(w http.ResponseWriter, r *http.Request) {
	switch {
	case g.draining():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case !g.ready():
		http.Error(w, "no healthy engine", http.StatusServiceUnavailable)
	}
	if g.mayScrape(r) != nil {
		return
	}
	for _, e := range g.Status("").Workers {
		if e.Contradiction != "" {
			fmt.Fprintf(w, "%s: %s\n", e.Name, e.Contradiction) // an error means that the client disconnected
		}
	}
}

// ready reports whether an engine of any model is not ejected.
func (g *Gateway) ready() bool {
	for _, d := range g.deployments {
		if d.fleet.ready() {
			return true
		}
	}
	return false
}

func writeBody(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) // an error means that the client disconnected
}
