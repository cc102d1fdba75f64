// SPDX-License-Identifier: Apache-2.0

// Package prompt renders requests of any API into a model's prompt and decodes the model's output into events.
//
//	          block.Request ──▶ Model.Render ──▶ Prompt: text, segments, spans, token ids
//	                                                          │ the engine
//	event.Event: Start … Finish ◀── Decoder ◀── token ids or text
//
// A [Model] combines the files of a Hugging Face model: tokenizer, chat template, stop tokens and context window. Its
// family specifies how the model writes reasoning and tool calls. Loading probes the template to find out what it
// prints; nothing is guessed from the model's name alone.
//
// # Past reasoning
//
// The reasoning of past turns that the prompt includes is determined by, in order of precedence, the request, the
// operator's rule (Options.Replay), what the template was observed to print, and the family's rule. See package replay.
// [Prompt].Outcomes contains the result for each turn. Options.Replay "widest" keeps whatever the template can print:
// each prompt of a conversation then begins with the previous one, if the template has a variable for that.
//
// # Reasoning in the response
//
// A request's thinking, effort and budget are passed to the template in the variables that it reads. Probing finds
// their names and values. A request that specifies none of them leaves the choice to the template, as transformers,
// vLLM and SGLang do: Gemma 4 and DeepSeek V3.1 then do not reason, Qwen3 does. llama-server differs; it passes
// enable_thinking true to every template.
//
// # Parts of a message
//
// The text parts of one message are printed as the template prints a list of them, which probing finds per role: Qwen3.5,
// Gemma 4 and Kimi print nothing between them, Granite 4 a newline, MiniMax M2 nothing except between the parts of a
// result. A template that reads only strings gets a newline between them, as vLLM joins them. The parts are those of the
// request, also the blocks of a system prompt in the Messages API, which vLLM joins for every template. An assistant's
// message at the end of a request of the Messages API is continued, as Anthropic specifies; vLLM closes it.
//
// # Past calls
//
// The template prints past calls. If it prints none, as in LFM2, Granite 3.3 and the distilled models of DeepSeek R1, they
// are written as the family writes them, after the text of the message. If the family is not known, or has no calls,
// they become text in <tool_call> tags, which is a loss.
//
// Arguments that are not a JSON object, such as those of a call that was cut, are printed as they are if the template
// prints strings. If it requires an object, they become {}, as in vLLM, which is a loss.
//
// # Prompts that grow
//
// A response that is returned unmodified in the next request, by wire.Turn or by a client, renders to the bytes that
// the model generated if the rule for reasoning and the template permit it. The next prompt then begins with the
// previous prompt and response, which the engine's prefix cache holds. Calls keep the ids that the model wrote if those
// are new in the conversation.
//
// # Provenance
//
// A prompt consists of segments. Text of the template is trusted; text of the request is not, and [Prompt.IDs] never
// encodes it as a control token. [Prompt].Namespace separates tenants in the prefix cache of a Model.
package prompt
