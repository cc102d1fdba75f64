// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// This file refuses requests that a web page makes in the browser of a user, unless its origin is permitted, and
// requests whose end is ambiguous.

// newOrigins returns the check of origins.
func newOrigins(trusted []string) (*http.CrossOriginProtection, error) {
	p := http.NewCrossOriginProtection()
	for _, o := range trusted {
		if err := p.AddTrustedOrigin(o); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// guard returns an error for a request that must not be served. h is the header of the response.
func (g *Gateway) guard(h http.Header, r *http.Request) error {
	if c, ok := r.Context().Value(connKey{}).(*framedConn); ok {
		last, ambiguous := c.state()
		if ambiguous {
			return apierr.Invalid("", "The end of your request is ambiguous: it must not have both Content-Length and Transfer-Encoding, or continued header lines.")
		}
		if last {
			h.Set("Connection", "close")
		}
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && local.IP.IsLoopback() {
		if !isLoopback(r.Host) && !slices.ContainsFunc(g.opt.Hosts, func(h string) bool { return strings.EqualFold(h, hostname(r.Host)) }) {
			return forbidden(fmt.Sprintf("The host %.100q is not a name of this server, which listens on a loopback address.", r.Host))
		}
	}
	check := r
	if isUpgrade(r) { // the check is for requests that change something
		post := *r
		post.Method = http.MethodPost
		check = &post
	}
	if err := g.origins.Check(check); err != nil {
		return forbidden(fmt.Sprintf("Requests of web pages of the origin %.100q are not permitted.", r.Header.Get("Origin")))
	}
	return nil
}

// cors lets the web pages of Options.Origins read responses. It reports whether the request was a preflight, to which it
// then responded: preflights have no key.
func (g *Gateway) cors(w http.ResponseWriter, r *http.Request) (preflight bool) {
	if len(g.opt.Origins) == 0 {
		return false
	}
	h, origin := w.Header(), r.Header.Get("Origin")
	h.Add("Vary", "Origin")
	if !slices.Contains(g.opt.Origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After, "+headerDropped)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

func forbidden(message string) error {
	return &apierr.Error{Why: event.Invalid, Code: "permission_denied", Status: http.StatusForbidden, Message: message}
}

// hostname returns a host without its port and brackets.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	h := hostname(host)
	if strings.EqualFold(h, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(h)
	return err == nil && ip.Unmap().IsLoopback()
}

// isUpgrade reports whether a request asks for WebSocket.
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// isProbe reports whether a request asks for the state of the gateway, also while it drains.
func isProbe(r *http.Request) bool {
	return r.URL.Path == "/health" || r.URL.Path == "/ready" || r.URL.Path == "/metrics"
}
