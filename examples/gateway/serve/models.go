// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/catalog"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// listModels lists all records in the form that the client expects.
func (g *Gateway) listModels(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get
	style := catalog.DetectStyle(r.Header.Get, query)
	if style != catalog.Anthropic {
		writeModels(w, r, catalog.AppendList(nil, g.models.Models(), style))
		return
	}
	body, err := catalog.AppendPage(nil, g.models.Models(), query)
	if err != nil {
		g.refuse(w, r, wire.Messages, err)
		return
	}
	writeModels(w, r, body)
}

// oneModel returns one record. Its id may contain slashes, literal or escaped.
func (g *Gateway) oneModel(w http.ResponseWriter, r *http.Request) {
	id, _ := catalog.PathID(r.URL.Path)
	m, ok := g.models.Lookup(id)
	if !ok {
		g.refuse(w, r, apiOf(r), apierr.ModelNotFound(id))
		return
	}
	writeModels(w, r, catalog.AppendModel(nil, m, catalog.DetectStyle(r.Header.Get, r.URL.Query().Get)))
}

func writeModels(w http.ResponseWriter, r *http.Request, body []byte) {
	tag := catalog.ETag(body)
	w.Header().Set("ETag", tag)
	w.Header().Add("Vary", "Anthropic-Version, User-Agent")
	if hasTag(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeBody(w, body)
}

// hasTag reports whether an If-None-Match header contains tag. Proxies that compress responses mark it as weak.
func hasTag(header []string, tag string) bool {
	for _, list := range header {
		for t := range strings.SplitSeq(list, ",") { // our tags contain no comma
			if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// record returns the catalog record of the model of a checked request.
func (c *call) record() *catalog.Model {
	m, _, _ := c.g.lookup(c.req.Params().Model)
	return m
}

// overflow returns an error if the prompt exceeds the model's limits or leaves no room for output.
func (c *call) overflow() error {
	m, n := c.record(), int64(len(c.prompt))
	limit := cmp.Or(m.MaxInputTokens, m.ContextWindow)
	if n <= limit && n < m.ContextWindow {
		return nil
	}
	e := apierr.ContextLength(n, 0, limit)
	e.Param = turnsField(c.api)
	return e
}

// decline sends an error if the response has not started. Codex shortens a conversation that is too long if a stream
// fails with that code, but ignores the code in an HTTP error (codex-rs codex-api/src/api_bridge.rs, 2026).
func (c *call) decline(w http.ResponseWriter, r *http.Request, err error) {
	c.refused(r.Context(), err)
	e := public(r.Context(), err)
	codex := catalog.DetectStyle(r.Header.Get, func(string) string { return "" }) == catalog.Codex
	if !codex || c.api != wire.Responses || c.req == nil || !c.req.Params().Stream || e.Why != event.Invalid || e.Code != apierr.CodeContextLength {
		c.g.refuse(w, r, c.api, err)
		return
	}
	c.g.opt.Logger.Warn("request refused in stream", "request", c.id, "path", r.URL.Path, "err", loggable(e))
	enc := c.encoder()
	var out streamWriter
	out.start(w, enc.Fail(nil, e), enc.AppendKeepAlive(nil), c.g.opt.KeepAlive)
	out.write(nil) // writes the opening; an error means that the client disconnected
	out.close(nil)
}
