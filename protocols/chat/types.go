// SPDX-License-Identifier: Apache-2.0

package chat

import "github.com/weft-go/weft/protocols/block"

// Fields reads what only the Chat API has. Every method looks into the body when it is called. What engines add is in
// [block.Request.Engine].
type Fields struct{ r *block.Request }

// Of returns the fields of r that only this API has. On a request of another API all of them are empty.
func Of(r *block.Request) Fields {
	if r.API() != block.Chat {
		return Fields{block.New()}
	}
	return Fields{r}
}

func (f Fields) str(path ...string) string {
	s, _ := f.r.Value(path...).Str(nil)
	return s
}

// LogitBias returns the bias per token id, which the API spells as a string; nil if absent.
func (f Fields) LogitBias() map[string]float64 { return f.r.LogitBias() }

// ChatTemplateKwargs returns chat_template_kwargs (or chat_template_args) as raw JSON, nil if absent.
func (f Fields) ChatTemplateKwargs() []byte { return f.r.Engine().ChatTemplateKwargs }

// NvExt returns Dynamo's nvext as raw JSON, nil if absent.
func (f Fields) NvExt() []byte { return f.r.Field("nvext") }

// Modalities returns modalities as raw JSON, nil if absent.
func (f Fields) Modalities() []byte { return f.r.Field("modalities") }

// Audio returns audio, the wanted voice and format, as raw JSON, nil if absent.
func (f Fields) Audio() []byte { return f.r.Field("audio") }

// Prediction returns prediction as raw JSON, nil if absent.
func (f Fields) Prediction() []byte { return f.r.Field("prediction") }

// WebSearchOptions returns web_search_options as raw JSON, nil if absent.
func (f Fields) WebSearchOptions() []byte { return f.r.Field("web_search_options") }

// Moderation returns moderation as raw JSON, nil if absent.
func (f Fields) Moderation() []byte { return f.r.Field("moderation") }

// Metadata returns metadata as raw JSON, nil if absent.
func (f Fields) Metadata() []byte { return f.r.Field("metadata") }

// Store reports whether the answer is to be kept; false if the request is silent.
func (f Fields) Store() bool {
	b, _ := f.r.Value("store").Bool()
	return b
}

// SafetyIdentifier returns safety_identifier, "" if absent.
func (f Fields) SafetyIdentifier() string { return f.str("safety_identifier") }

// CacheRetention returns prompt_cache_retention: in_memory, 24h; "" if absent.
func (f Fields) CacheRetention() string { return f.str("prompt_cache_retention") }

// CacheOptions returns prompt_cache_options as raw JSON, nil if absent.
func (f Fields) CacheOptions() []byte { return f.r.Field("prompt_cache_options") }

// ContinuousUsage reports whether every chunk of a stream is to carry usage (vLLM, Dynamo).
func (f Fields) ContinuousUsage() bool {
	b, _ := f.r.Value("stream_options", "continuous_usage_stats").Bool()
	return b
}

// Obfuscation reports whether the stream may be padded against traffic analysis; true if the request is silent.
func (f Fields) Obfuscation() bool {
	b, ok := f.r.Value("stream_options", "include_obfuscation").Bool()
	return b || !ok
}

// ContinueFinalMessage reports whether the last message is to be continued instead of answered.
func (f Fields) ContinueFinalMessage() bool { return f.r.Engine().ContinueFinal }

// AddGenerationPrompt reports whether the prompt ends with the start of an answer; true if the request is silent.
func (f Fields) AddGenerationPrompt() bool {
	b := f.r.Engine().AddGenerationPrompt
	return b == nil || *b
}
