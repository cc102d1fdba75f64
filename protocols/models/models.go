// SPDX-License-Identifier: Apache-2.0

package models

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// Model describes a model. ID is required; of the rest, zero is not known.
type Model struct {
	ID      string
	Created int64  // Unix time in seconds at which the model was made. Give it a fixed value: clients cache by it
	OwnedBy string // OpenAI's form demands one: "" is written as "weft"

	DisplayName string // "" is written as ID

	ContextWindow   int64 // tokens of prompt and answer together
	MaxInputTokens  int64 // tokens of the prompt; 0 is written as ContextWindow
	MaxOutputTokens int64 // tokens of the answer

	Root   string // what the model was made from (vLLM)
	Parent string // the base of an adapter (vLLM)

	// Capabilities is Anthropic's object of capabilities, as raw and valid JSON.
	Capabilities []byte

	// Raw is the JSON that the model was decoded from; nothing is written from it.
	Raw []byte
}

// Style is the form of an answer.
type Style uint8

// The styles.
const (
	OpenAI Style = iota
	Anthropic
)

// StyleOf returns the style that a client expects, given its anthropic-version header, "" if it sent none.
func StyleOf(anthropicVersion string) Style {
	if anthropicVersion != "" {
		return Anthropic
	}
	return OpenAI
}

// owner is the owned_by of a model that has none.
const owner = "weft"

// maxCreated is the last second that a date with a year of four digits can say.
const maxCreated = 253402300799

// Compare orders models by id.
func Compare(a, b Model) int { return cmp.Compare(a.ID, b.ID) }

// Find returns the model with an id, nil if there is none.
func Find(list []Model, id string) *Model {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// PathID returns the id in the path of a request, decoded as in url.URL.Path, for example org/name of
// /v1/models/org/name. Whatever stands in front of /v1/models/ is passed over. ok is false for a path that names no model,
// as that of the list.
func PathID(path string) (id string, ok bool) {
	_, id, ok = strings.Cut(path, "/v1/models/")
	id = strings.TrimSuffix(id, "/")
	return id, ok && id != ""
}

// AppendList appends the answer to a request for all models, in their order.
func AppendList(dst []byte, list []Model, s Style) []byte {
	if s == OpenAI {
		dst = append(dst, `{"object":"list","data":[`...)
	} else {
		dst = append(dst, `{"data":[`...)
	}
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, &list[i], s)
	}
	if s == OpenAI {
		return append(dst, `]}`...)
	}
	dst = append(dst, `],"has_more":false,"first_id":`...)
	if len(list) == 0 {
		return append(dst, `null,"last_id":null}`...)
	}
	dst = jsonw.AppendString(dst, list[0].ID)
	dst = append(dst, `,"last_id":`...)
	dst = jsonw.AppendString(dst, list[len(list)-1].ID)
	return append(dst, '}')
}

// AppendModel appends the answer to a request for one model.
func AppendModel(dst []byte, m *Model, s Style) []byte {
	if s == Anthropic {
		dst = appendString(dst, `{"type":"model","id":`, m.ID)
		dst = appendString(dst, `,"display_name":`, cmp.Or(m.DisplayName, m.ID))
		dst = append(dst, `,"created_at":"`...)
		dst = time.Unix(min(max(0, m.Created), maxCreated), 0).UTC().AppendFormat(dst, time.RFC3339)
		dst = append(dst, '"')
		dst = appendCount(dst, `,"max_input_tokens":`, cmp.Or(m.MaxInputTokens, m.ContextWindow))
		dst = appendCount(dst, `,"max_tokens":`, m.MaxOutputTokens)
		if jsonw.IsObject(m.Capabilities) {
			dst = jsonw.AppendRaw(append(dst, `,"capabilities":`...), m.Capabilities)
		}
		return append(dst, '}')
	}
	dst = appendString(dst, `{"id":`, m.ID)
	dst = append(dst, `,"object":"model","created":`...)
	dst = strconv.AppendInt(dst, max(0, m.Created), 10)
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

func appendString(dst []byte, key, s string) []byte {
	return jsonw.AppendString(append(dst, key...), s)
}

// appendCount appends a member that is known.
func appendCount(dst []byte, key string, n int64) []byte {
	if n <= 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, key...), n, 10)
}
