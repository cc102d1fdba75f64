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

// routes returns the gateway's endpoints.
func (g *Gateway) routes() *http.ServeMux {
	m := http.NewServeMux()
	post := func(a *wire.API, path string, handle http.HandlerFunc) {
		m.HandleFunc(path, g.endpoint(a, methods{http.MethodPost: handle}))
	}
	get := func(path string, handle http.HandlerFunc) {
		m.HandleFunc(path, g.endpoint(nil, methods{http.MethodGet: handle}))
	}
	for _, a := range []*wire.API{wire.Chat, wire.Messages, wire.Completions} {
		post(a, a.Path(), func(w http.ResponseWriter, r *http.Request) { g.respond(w, r, a) })
	}
	respond := func(w http.ResponseWriter, r *http.Request) { g.respond(w, r, wire.Responses) }
	plain := g.endpoint(wire.Responses, methods{http.MethodPost: respond})
	m.HandleFunc(wire.Responses.Path(), func(w http.ResponseWriter, r *http.Request) {
		if isUpgrade(r) {
			g.connect(w, r)
			return
		}
		plain(w, r)
	})
	post(wire.Responses, compactPath, respond)
	m.HandleFunc("/v1/responses/{id}", g.endpoint(wire.Responses, methods{http.MethodGet: g.oneResponse, http.MethodDelete: g.oneResponse}))
	m.HandleFunc("/v1/responses/{id}/input_items", g.endpoint(wire.Responses, methods{http.MethodGet: g.inputItems}))
	post(wire.Completions, "/v1/embeddings", g.embed)
	post(wire.Messages, "/v1/messages/count_tokens", g.count(wire.Messages, messages.AppendTokenCount))
	post(wire.Responses, "/v1/responses/input_tokens", g.count(wire.Responses, responses.AppendTokenCount))
	for _, prefix := range []string{"/v1", ""} { // vLLM has both, by version
		post(wire.Chat, prefix+"/tokenize", g.convert((*call).tokenize))
		post(wire.Chat, prefix+"/detokenize", g.convert((*call).detokenize))
	}
	get("/v1/models", g.known(g.listModels))
	get("/v1/models/{$}", g.known(g.listModels))
	get("/v1/models/{id...}", g.known(g.oneModel))
	get("/version", g.known(func(w http.ResponseWriter, r *http.Request) {
		writeBody(w, []byte(`{"version":`+strconv.Quote(cmp.Or(g.opt.Version, "unknown"))+`}`))
	}))
	get("/health", func(http.ResponseWriter, *http.Request) {})
	get("/ready", g.readiness)
	if g.opt.Metrics != nil {
		get("/metrics", g.metrics)
	}
	get("/{$}", func(http.ResponseWriter, *http.Request) {}) // some clients probe with HEAD /
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, r, apiOf(r), &apierr.Error{Why: event.NotFound, Code: "unknown_url", Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
	})
	return m
}

// methods holds the handlers of an endpoint. The handler of GET also handles HEAD.
type methods map[string]http.HandlerFunc

// endpoint returns a handler that refuses other methods in the error form of an API; nil means the one that apiOf returns. The
// patterns of package http could refuse them, but not in that form.
func (g *Gateway) endpoint(a *wire.API, of methods) http.HandlerFunc {
	var known, allow []string
	for _, name := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if of[name] == nil {
			continue
		}
		known, allow = append(known, name), append(allow, name)
		if name == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.Method
		if name == http.MethodHead {
			name = http.MethodGet
		}
		if handle := of[name]; handle != nil {
			handle(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		g.refuse(w, r, cmp.Or(a, apiOf(r)), &apierr.Error{Why: event.Invalid, Code: "method_not_allowed",
			Message: "Use " + strings.Join(known, " or ") + " " + r.URL.Path + "."})
	}
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
