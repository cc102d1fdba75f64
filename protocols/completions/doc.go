// SPDX-License-Identifier: Apache-2.0

// Package completions is the Completions API, POST /v1/completions, as of openai-go v3.52 (2026-08) with the extensions
// that vLLM, SGLang and Dynamo share. It is the API of bare prompts: engines behind a serving side that renders and
// tokenizes by itself are asked through it.
//
// Requests come in through [Decode] and go out through [Encode]. Answers go out through [Stream], for stream:true, or
// [AppendResponse]; the answers of an engine come in through [StreamDecoder] or [DecodeResponse]. All are pure: events
// in, bytes out, and back.
//
// # Prompts
//
// A request holds one prompt or several, and each asks for an answer of its own (n answers, to be exact). In the shared
// form each prompt is a user turn with one block:
//
//	"prompt":"a"              one turn, Text
//	"prompt":["a","b"]        two turns, Text
//	"prompt":[1,2]            one turn, Unknown of the type tokens, its JSON is [1,2]
//	"prompt":[[1,2],[3]]      two turns, Unknown of the type tokens
//
// [Fields.Prompts] and [Fields.TokenPrompts] read them, [Tokens] makes such a block. A request without prompt must have
// prompt_embeds or nvext.token_data.
//
// # Stream
//
// One chunk a delta, and all chunks share id, created and model:
//
//	Start       nothing
//	Text        choices:[{text, index, logprobs:null, finish_reason:null}]
//	Refusal     the same: it is text that the caller sees
//	Logprobs    logprobs beside an empty text
//	Finish      an empty text with finish_reason, once per choice
//	Close       usage with empty choices, if asked for, then [DONE]
//	Fail, Error {"error":{…}}, and no [DONE]
//
// # Decisions
//
//   - A completion has text only. Reasoning, calls and their results, annotations and opaque items have no form here:
//     they are left out, [Stream.Dropped] counts them, and [AppendResponse] leaves them out as well. Whoever wants the
//     markup of the model sees that the engine's text is passed on as Text and runs no parser over it.
//   - finish_reason is stop, length or content_filter. An answer that ended with calls ended with stop.
//   - Events carry log probabilities in the form of the Chat API. They become this API's parallel lists and, in the
//     decoders, come back from them; text_offset counts characters from the start of the answer.
//   - A conversion from another API has one prompt, the text of the conversation. One user turn of one text is converted
//     without loss; anything more is joined by blank lines, and every turn, tool and picture is a loss.
//   - A converted request always has max_tokens: without it, OpenAI and vLLM stop after 16 tokens.
//   - A stream that is closed before every choice has finished ends with an error. No client takes it for a whole answer.
//   - Text that is not UTF-8 becomes U+FFFD. A character that is cut between two deltas is held until it is whole, at most
//     3 bytes.
package completions
