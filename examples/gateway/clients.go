// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"slices"
)

// printClients writes how to start clients that use the gateway.
func printClients(w io.Writer, c *config, addr string, secure bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	base, key := "http://"+net.JoinHostPort(host, port), "KEY"
	if secure {
		base = "https" + base[len("http"):]
	}
	if c.KeysFile == "" && !slices.ContainsFunc(c.Tenants, func(t tenantConfig) bool { return len(t.Keys) > 0 }) {
		key = "x" // any
	}
	fmt.Fprintf(w, "Serving %s at %s. To use it:\n\n", c.Model, base)
	for _, l := range [][2]string{
		{"Claude Code", fmt.Sprintf("ANTHROPIC_BASE_URL=%s ANTHROPIC_AUTH_TOKEN=%s ANTHROPIC_MODEL=%s ANTHROPIC_SMALL_FAST_MODEL=%[3]s claude", base, key, c.Model)},
		{"Codex", fmt.Sprintf(`WEFT_KEY=%[2]s codex -m %[3]s -c model_provider=weft -c 'model_providers.weft={name="weft",base_url="%[1]s/v1",env_key="WEFT_KEY",wire_api="responses"}'`, base, key, c.Model)},
		{"opencode", fmt.Sprintf(`OPENCODE_CONFIG_CONTENT='{"model":"weft/%[3]s","provider":{"weft":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"%[1]s/v1","apiKey":"%[2]s"},"models":{"%[3]s":{}}}}}' opencode`, base, key, c.Model)},
		{"Qwen Code", fmt.Sprintf("OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s OPENAI_MODEL=%s qwen", base, key, c.Model)},
		{"OpenAI SDKs", fmt.Sprintf("OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s", base, key)},
		{"Anthropic SDKs", fmt.Sprintf("ANTHROPIC_BASE_URL=%s ANTHROPIC_AUTH_TOKEN=%s", base, key)},
	} {
		fmt.Fprintf(w, "  %-15s %s\n", l[0], l[1])
	}
	fmt.Fprintln(w)
}
