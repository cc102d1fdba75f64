// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// newEndpoint returns the gateway of c at the address of its listener.
func newEndpoint(c *config, addr string, secure bool) *endpoint {
	g := &endpoint{url: "http://" + addr, key: "KEY", model: c.Model, window: c.MaxModelLen}
	if host, port, err := net.SplitHostPort(addr); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			g.url = "http://" + net.JoinHostPort("127.0.0.1", port)
		}
	}
	if secure {
		g.url = "https" + strings.TrimPrefix(g.url, "http")
	}
	if c.KeysFile == "" && !slices.ContainsFunc(c.Tenants, func(t tenantConfig) bool { return len(t.Keys) > 0 }) {
		g.key = "x" // any
	}
	return g
}

// printClients writes how to start clients that use the gateway.
func printClients(w io.Writer, g *endpoint) {
	fmt.Fprintf(w, "Serving %s at %s. To use it:\n\n", g.model, g.url)
	for _, h := range harnesses {
		env, args := h.configure(g)
		var words []string
		for _, v := range env {
			name, value, _ := strings.Cut(v, "=")
			words = append(words, name+"="+shellWord(value))
		}
		if h.program != "" {
			words = append(words, h.program)
		}
		for _, a := range args {
			words = append(words, shellWord(a))
		}
		if h.file != nil {
			words = []string{"gateway -engine URL launch " + h.name}
		}
		fmt.Fprintf(w, "  %-12s %s\n", h.title, strings.Join(words, " "))
	}
	fmt.Fprintln(w)
}

// shellWord quotes a word for a shell where that is necessary.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
