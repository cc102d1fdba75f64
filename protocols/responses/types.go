// SPDX-License-Identifier: Apache-2.0

package responses

import "github.com/weft-go/weft/protocols/block"

// Fields reads what only the Responses API has. Every method looks into the body when it is called.
type Fields struct{ r *block.Request }

// Of returns the fields of r that only this API has. On a request of another API all of them are empty.
func Of(r *block.Request) Fields {
	if r.API() != block.Responses {
		return Fields{block.New()}
	}
	return Fields{r}
}

// PreviousResponseID returns the stored response that this request continues, "" if none.
func (f Fields) PreviousResponseID() string {
	s, _ := f.r.Value("previous_response_id").Str(nil)
	return s
}

// Conversation returns the stored conversation that this request belongs to, "" if none.
func (f Fields) Conversation() string {
	v := f.r.Value("conversation")
	if id, ok := v.Get("id").Str(nil); ok {
		return id
	}
	id, _ := v.Str(nil)
	return id
}

// Include returns the extra output that is wanted, for example reasoning.encrypted_content.
func (f Fields) Include() []string {
	var list []string
	v := f.r.Value("include")
	for e := v.First(); e.Exists(); e = v.Next(e) {
		if s, ok := e.Str(nil); ok {
			list = append(list, s)
		}
	}
	return list
}

// Store reports whether the response is to be kept; true if the request is silent.
func (f Fields) Store() bool {
	b, ok := f.r.Value("store").Bool()
	return b || !ok
}

// Background reports whether the response is to be made in the background.
func (f Fields) Background() bool {
	b, _ := f.r.Value("background").Bool()
	return b
}

// ReasoningContext returns reasoning.context: which past reasoning stays (auto, current_turn, all_turns); "" if absent.
func (f Fields) ReasoningContext() string {
	s, _ := f.r.Value("reasoning", "context").Str(nil)
	return s
}

// ReasoningMode returns reasoning.mode: standard, pro; "" if absent.
func (f Fields) ReasoningMode() string { return f.str("reasoning", "mode") }

// Truncation returns truncation: auto, disabled; "" if absent.
func (f Fields) Truncation() string { return f.str("truncation") }

// MaxToolCalls returns how many calls of hosted tools are allowed, nil if the request does not say.
func (f Fields) MaxToolCalls() *int64 {
	if n, ok := f.r.Value("max_tool_calls").Int(); ok {
		return &n
	}
	return nil
}

// Prompt returns prompt, a reference to a stored one, as raw JSON, nil if absent.
func (f Fields) Prompt() []byte { return f.r.Field("prompt") }

// ContextManagement returns context_management as raw JSON, nil if absent.
func (f Fields) ContextManagement() []byte { return f.r.Field("context_management") }

// Moderation returns moderation as raw JSON, nil if absent.
func (f Fields) Moderation() []byte { return f.r.Field("moderation") }

// SafetyIdentifier returns safety_identifier, "" if absent.
func (f Fields) SafetyIdentifier() string { return f.str("safety_identifier") }

// CacheRetention returns prompt_cache_retention: in_memory, 24h; "" if absent.
func (f Fields) CacheRetention() string { return f.str("prompt_cache_retention") }

// CacheOptions returns prompt_cache_options as raw JSON, nil if absent.
func (f Fields) CacheOptions() []byte { return f.r.Field("prompt_cache_options") }

// Obfuscation reports whether the stream may be padded against traffic analysis; true if the request is silent.
func (f Fields) Obfuscation() bool {
	b, ok := f.r.Value("stream_options", "include_obfuscation").Bool()
	return b || !ok
}

// NvExt returns Dynamo's nvext as raw JSON, nil if absent.
func (f Fields) NvExt() []byte { return f.r.Field("nvext") }

func (f Fields) str(path ...string) string {
	s, _ := f.r.Value(path...).Str(nil)
	return s
}

// Metadata returns metadata as raw JSON, nil if absent.
func (f Fields) Metadata() []byte { return f.r.Field("metadata") }

// ClientMetadata returns Codex's client_metadata as raw JSON, nil if absent.
func (f Fields) ClientMetadata() []byte { return f.r.Field("client_metadata") }
