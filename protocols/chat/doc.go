// SPDX-License-Identifier: Apache-2.0

// Package chat implements the Chat Completions API, POST /v1/chat/completions, as of openai-go v3.96 with the
// extensions that vLLM, SGLang and Dynamo share.
//
// [Decode] decodes requests and [AppendRequest] encodes them; [AppendMessages] appends the messages in the form that chat
// templates read. Package wire encodes and decodes responses, as described below.
//
// # Stream
//
// Each delta is one chunk. All chunks have the same id, created and model:
//
//	Start, or the first event   delta {role, content:""}, once per choice
//	Text                        delta {content}
//	Reasoning                   delta {reasoning_content}, or as wire.Options.Reasoning specifies
//	Refusal                     delta {refusal}
//	ToolStart                   delta {tool_calls:[{index, id, type, function:{name, arguments:""}}]}
//	ToolArgs                    delta {tool_calls:[{index, function:{arguments}}]}
//	ToolEnd                     nothing, or the event tool_call_dispatch
//	Annotation, Logprobs        delta {annotations}; logprobs with an empty delta
//	Finish                      delta {} with finish_reason, once per choice
//	end                         usage with empty choices, if asked for, then [DONE]
//	Fail, Error                 {"error":{…}}, and no [DONE]
//
// Deltas are in the order in which the model generated them; clients that collect each field separately lose this
// order. The indexes of calls are dense and in order of appearance, regardless of the producer's ordinals.
//
// # Past reasoning
//
// A message has one string of reasoning, reasoning_content. As in OpenRouter's API, reasoning_details holds signatures,
// encrypted and withheld reasoning, and the separate runs with their positions among text and calls:
//
//	"reasoning_content":"one\ntwo","reasoning_details":[
//	 {"type":"reasoning.text","index":0,"text":"one","signature":"c2ln"},
//	 {"type":"reasoning.text","index":1,"id":"weft1p.1.2.","text":"two"}]
//
// Here the first run is at the start of the message, and the second after one piece of text and two calls, as its id
// specifies; the part after the second number is ignored. Decode also accepts thinking_blocks (LiteLLM), a list as
// reasoning_content (Dynamo: one entry before each call), lists without positions, and lists of deltas that a client
// has not merged.
//
// Responses have the list if wire.Options.Details specifies it. A message cannot express the position of text among
// calls: clients read all text first. Decode places text as early as the runs of reasoning permit.
//
// A client that returns only reasoning_content loses positions, signatures and the bounds of runs, but not the text:
// the runs are joined by line ends, as in [AppendMessages]. A template that prints the reasoning of a turn in one piece
// therefore makes the same prompt. One that prints it between calls ([RenderOptions.ReasoningSegments]) prints all of
// it before the first call.
//
// # Requests to engines
//
// Engines read different fields of this API and ignore the others, or refuse them. A request that is converted to this
// API with [block.EncodeOptions.Engine] has these:
//
//	            limit                  past reasoning     reasoning on / off                     budget
//	(none)      max_completion_tokens  reasoning_content  thinking {type}                        a loss
//	vllm        max_completion_tokens  reasoning          chat_template_kwargs / effort none     a loss
//	sglang      max_completion_tokens  reasoning_content  chat_template_kwargs                   a loss
//	llama.cpp   max_completion_tokens  reasoning_content  chat_template_kwargs                   thinking_budget_tokens
//	ollama      max_tokens             reasoning          the model's default / effort none      a loss
//
// An effort is reasoning_effort for all; one that the engine would refuse is a loss. The variables are enable_thinking
// and thinking. Models of vLLM with Mistral's own tokenizer refuse variables. Tools with free-text input become functions
// with one string argument named input, as in [AppendTools]. No engine can restrict calls to some of the tools, and
// llama.cpp cannot require a certain one; Ollama ignores the choice and several sampling parameters. These are losses.
//
// # Responses of engines
//
//	data: {"choices":[{"delta":{"role":"assistant"}}]}                    Start
//	data: {"choices":[{"delta":{"reasoning":"Hm."}}]}                     Reasoning
//	data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x",
//	       "function":{"name":"get","arguments":""}}]}}]}                 ToolStart
//	data: {"choices":[{"delta":{"tool_calls":[{"index":0,
//	       "function":{"arguments":"{}"}}]}}]}                            ToolArgs
//	data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}         ToolEnd, Finish
//	data: {"choices":[],"usage":{…}}                                      Usage
//	data: [DONE]                                                          nothing
//
// The Decoder follows these rules:
//
//   - Events are in the order of the chunks. The order in one delta is reasoning, content, refusal, calls, unless the
//     entries of reasoning_details specify positions. A new part begins with every change of kind and with every call.
//   - The API does not mark the end of a call. A call ends if its arguments are one complete JSON object and other
//     output arrives, or with the finish_reason. At the finish_reason, incomplete arguments abort the call: with
//     Truncated if the response was cut off, else with BadArguments. Arguments that are not an object abort it as soon
//     as other output arrives. The free text of a custom call ends only with the finish_reason, because it might
//     continue.
//   - ToolStart waits for the name. It has the id if that arrives before the first arguments; a later one is lost. A
//     delta of a call belongs to the call with its index; without an index, to the call with its id; without both, to
//     the last call. It opens a new call if it has a name and that call has ended, has another id or name, or has
//     complete arguments, because many servers give all calls the index 0.
//   - The finish_reason stop is ToolCalls after a complete call and Refused after a refusal.
//   - Usage may be before or after Finish.
//
// # Decisions
//
//   - Aborted calls: the API cannot withdraw data that was sent. The call gets no more arguments and does not affect
//     finish_reason. If its arguments are valid JSON, or empty, which clients read as {}, one more delta with a quote
//     or a brace makes them invalid, because many clients execute calls regardless of the finish_reason. A call that
//     aborts before its name is known is never sent. A response that is not streamed has aborted calls in the same form.
//     wire.Options.WholeCalls avoids partial calls by sending each call only when it is complete.
//   - If the request declares functions, the form before tools, the first call of a choice is a function_call, without an id,
//     and the finish_reason is function_call. Decode treats such a request as one that permits one call in a turn.
//   - Calls inside reasoning are left out unless wire.Options.CallsInReasoning is set. Their markup is not sent as
//     reasoning text either, because the events do not contain it.
//   - Calls and results of server-side tools, and opaque items, cannot be expressed. wire.Encoder.Dropped counts them.
//   - finish_reason is tool_calls if and only if a complete call was sent and the model stopped by itself; length and
//     content_filter take precedence.
//   - wire.Encoder.Finish ends each choice that lacks an event.Finish as if the model had stopped. If such a choice has
//     an open call or only an event.Start, the response was cut off, and the stream ends with an error so that no
//     client mistakes it for a complete one.
//   - The id of a call is the producer's, unless it is empty or occurred before in the response. It is then "call_",
//     the response id without its prefix, and the ordinal, so that the same response id gives the same call ids.
//   - Invalid UTF-8 becomes U+FFFD. A character that is split between two deltas is held until it is complete, at most
//     3 bytes.
package chat
