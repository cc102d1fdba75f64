// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// Style is the form of a response.
type Style uint8

// The styles.
const (
	OpenAI Style = iota
	Anthropic
	Codex
)

// DetectStyle returns the style that a client expects. header and query return a header and a query parameter of its
// request, or "" if absent. Codex sends the parameter client_version, Anthropic's clients the header anthropic-version.
// Codex and Claude Code are also recognized by their User-Agent, because Claude Code's request for models may lack the
// header.
func DetectStyle(header, query func(name string) string) Style {
	agent := header("User-Agent")
	switch {
	case query("client_version") != "", strings.HasPrefix(agent, "codex_"), strings.HasPrefix(agent, "codex-"):
		return Codex
	case header("Anthropic-Version") != "", strings.HasPrefix(agent, "claude-cli/"), strings.HasPrefix(agent, "claude-code/"):
		return Anthropic
	}
	return OpenAI
}

// ETag returns an entity tag for a response, derived from its bytes. Codex stores it with the list.
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// owner is the owned_by of a model without OwnedBy.
const owner = "weft"

// maxCreated is the last second of the year 9999.
const maxCreated = 253402300799

// AppendList appends the response to a request for all models, in the order of list. See [AppendPage] for Anthropic's
// pages.
func AppendList(dst []byte, list []Model, s Style) []byte {
	switch s {
	case Anthropic:
		return appendPage(dst, list, false)
	case Codex:
		dst = append(dst, `{"models":[`...)
	default:
		dst = append(dst, `{"object":"list","data":[`...)
	}
	return append(appendModels(dst, list, s), `]}`...)
}

func appendModels(dst []byte, list []Model, s Style) []byte {
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, &list[i], s)
	}
	return dst
}

// AppendModel appends the response to a request for one model.
func AppendModel(dst []byte, m *Model, s Style) []byte {
	switch s {
	case Anthropic:
		return appendAnthropic(dst, m)
	case Codex:
		return appendCodex(dst, m)
	}
	dst = appendString(dst, `{"id":`, m.ID)
	dst = appendInt(dst, `,"object":"model","created":`, max(0, m.Created))
	dst = appendString(dst, `,"owned_by":`, cmp.Or(m.OwnedBy, owner))
	if m.DisplayName != "" {
		dst = appendString(dst, `,"display_name":`, m.DisplayName)
	}
	if m.Root != "" {
		dst = appendString(dst, `,"root":`, m.Root)
	}
	if m.Parent != "" {
		dst = appendString(dst, `,"parent":`, m.Parent)
	}
	dst = appendCount(dst, `,"max_model_len":`, m.ContextWindow)
	dst = appendCount(dst, `,"context_window":`, m.ContextWindow)
	dst = appendCount(dst, `,"max_input_tokens":`, m.MaxInputTokens)
	dst = appendCount(dst, `,"max_output_tokens":`, m.MaxOutputTokens)
	return append(dst, '}')
}

func appendAnthropic(dst []byte, m *Model) []byte {
	dst = appendString(dst, `{"type":"model","id":`, m.ID)
	dst = appendString(dst, `,"display_name":`, cmp.Or(m.DisplayName, m.ID))
	dst = append(dst, `,"created_at":"`...)
	dst = time.Unix(min(max(0, m.Created), maxCreated), 0).UTC().AppendFormat(dst, time.RFC3339)
	dst = append(dst, `","lifecycle":"active"`...)
	dst = appendCount(dst, `,"max_input_tokens":`, cmp.Or(m.MaxInputTokens, m.ContextWindow))
	dst = appendCount(dst, `,"max_tokens":`, m.MaxOutputTokens)
	if jsonw.IsObject(m.Capabilities) {
		dst = jsonw.AppendRaw(append(dst, `,"capabilities":`...), m.Capabilities)
	}
	return append(dst, '}')
}

func appendString(dst []byte, key, s string) []byte {
	return jsonw.AppendString(append(dst, key...), s)
}

// appendNullable appends a required field, which is null if unknown.
func appendNullable(dst []byte, key, s string) []byte {
	if s == "" {
		return append(append(dst, key...), "null"...)
	}
	return appendString(dst, key, s)
}

// appendCount appends a field, unless it is unknown.
func appendCount(dst []byte, key string, n int64) []byte {
	if n <= 0 {
		return dst
	}
	return appendInt(dst, key, n)
}

func appendBool(dst []byte, key string, b bool) []byte {
	return strconv.AppendBool(append(dst, key...), b)
}

func appendStrings(dst []byte, key string, list []string) []byte {
	dst = append(append(dst, key...), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonw.AppendString(dst, s)
	}
	return append(dst, ']')
}

func appendInt(dst []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(dst, key...), n, 10)
}
