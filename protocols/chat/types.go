// SPDX-License-Identifier: Apache-2.0

package chat

import "github.com/weft-go/weft/protocols/block"

// Fields reads what only the Chat API has. Every method looks into the body when it is called.
type Fields struct{ r *block.Request }

// Of returns the fields of r that only this API has. On a request of another API all of them are empty.
func Of(r *block.Request) Fields {
	if r.API() != block.Chat {
		return Fields{block.New()}
	}
	return Fields{r}
}

// LogitBias returns the bias per token id, as the body spells the ids; nil if absent.
func (f Fields) LogitBias() map[string]float64 {
	v := f.r.Value("logit_bias")
	if v.First().Exists() {
		m := make(map[string]float64, v.Len())
		for e := v.First(); e.Exists(); e = v.Next(e) {
			if x, ok := e.Float(); ok {
				m[e.Key()] = x
			}
		}
		return m
	}
	return nil
}

// ChatTemplateKwargs returns chat_template_kwargs (or chat_template_args, Dynamo's spelling) as raw JSON, nil if absent.
func (f Fields) ChatTemplateKwargs() []byte {
	if raw := f.r.Field("chat_template_kwargs"); raw != nil {
		return raw
	}
	return f.r.Field("chat_template_args")
}

// NvExt returns Dynamo's nvext as raw JSON, nil if absent.
func (f Fields) NvExt() []byte { return f.r.Field("nvext") }

// Modalities returns modalities as raw JSON, nil if absent.
func (f Fields) Modalities() []byte { return f.r.Field("modalities") }

// ContinueFinalMessage reports whether the answer is to go on with the last message (vLLM).
func (f Fields) ContinueFinalMessage() bool {
	b, _ := f.r.Value("continue_final_message").Bool()
	return b
}

// AddGenerationPrompt returns vLLM's add_generation_prompt, true if absent.
func (f Fields) AddGenerationPrompt() bool {
	b, ok := f.r.Value("add_generation_prompt").Bool()
	return b || !ok
}
