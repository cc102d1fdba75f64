// SPDX-License-Identifier: Apache-2.0

// Package completions implements the Completions API, POST /v1/completions, as of openai-go v3.96 with the extensions
// that vLLM, SGLang and Dynamo share. Its prompts are plain text or tokens, so servers that render and tokenize prompts
// themselves use it for requests to engines.
//
// [Decode] decodes requests and [AppendRequest] encodes them. Package wire encodes and decodes responses.
//
// # Prompts
//
// A request has one or more prompts and asks for n completions of each. In package block, each prompt is a user turn
// with one block:
//
//	"prompt":"a"              one turn, Text
//	"prompt":["a","b"]        two turns, Text
//	"prompt":[1,2]            one turn, Unknown of the type tokens, its JSON is [1,2]
//	"prompt":[[1,2],[3]]      two turns, Unknown of the type tokens
//
// [TokenIDs] returns the IDs in a block of tokens, and [Tokens] returns such a block. A request without a prompt must
// have prompt_embeds or nvext.token_data.
//
// # Stream
//
// Each delta is one chunk. All chunks have the same id, created and model:
//
//	Start       nothing
//	Text        choices:[{text, index, logprobs:null, finish_reason:null}]
//	Refusal     the same, because it is visible text
//	Logprobs    logprobs with an empty text
//	Finish      an empty text with finish_reason, once per choice
//	end         usage with empty choices, if asked for, then [DONE]
//	Fail, Error {"error":{…}}, and no [DONE]
//
// # Decisions
//
//   - A completion has only text. Reasoning, calls and their results, annotations and opaque items are left out;
//     wire.Encoder.Dropped counts those of a stream. To send the markup of the model to the client, pass on the
//     engine's text as Text, without a parser.
//   - finish_reason is stop, length or content_filter. It is stop for a response that ended with calls.
//   - Events have log probabilities in the form of the Chat API. The Encoder converts them to this API's parallel
//     lists, and the Decoder back. text_offset counts characters from the start of the text.
//   - A conversion from another API has one prompt, the text of the conversation. One user turn with one text converts
//     without loss. Otherwise texts are joined by blank lines, and every turn, tool and image is a loss.
//   - A converted request always has max_tokens, because OpenAI and vLLM otherwise stop after 16 tokens.
//   - wire.Encoder.Finish ends each choice that lacks an event.Finish as if the model had stopped. If such a choice has
//     only an event.Start, the response was cut off, and the stream ends with an error so that no client mistakes it
//     for a complete one.
//   - Invalid UTF-8 becomes U+FFFD. A character that is split between two deltas is held until it is complete, at most
//     3 bytes.
package completions
