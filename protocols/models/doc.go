// SPDX-License-Identifier: Apache-2.0

// Package models is the list of models that a server serves: GET /v1/models and GET /v1/models/{id}.
//
// Two APIs share these addresses. Anthropic's clients send the header anthropic-version and expect one form, all others
// expect OpenAI's; [StyleOf] decides. Fields that engines and gateways add to OpenAI's form are written when they are
// known: clients skip what they do not know.
//
//	OpenAI     {"object":"list","data":[{"id":…,"object":"model","created":…,"owned_by":…}]}
//	Anthropic  {"data":[{"type":"model","id":…,"display_name":…,"created_at":…}],"has_more":false,"first_id":…,"last_id":…}
//
// # Guarantees
//
//   - The same models give the same bytes: nothing here asks for the time, and lists keep their order. [Compare] sorts
//     models that come out of a map.
//   - An id may hold slashes, as those of Hugging Face do; [PathID] finds it in a path.
//
// Sources: openai-go v3.52 and anthropic-sdk-go v1.60 for the forms, vLLM (max_model_len, root, parent) and Dynamo
// (context_window, max_output_tokens) for what they add.
package models
