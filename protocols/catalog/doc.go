// SPDX-License-Identifier: Apache-2.0

// Package catalog describes the models of a server to clients: GET /v1/models and GET /v1/models/{id}.
//
// Terminology: a record is a [Model]. Its profile is all of its other fields except the ID: the context window, the
// reasoning levels, the supported features. An alias is a record with AliasOf: another ID for the same model, whose
// profile it inherits.
//
// Three kinds of clients request the list at the same URL, and [DetectStyle] distinguishes them:
//
//	OpenAI     {"object":"list","data":[{"id":…,"object":"model","created":…,"owned_by":…}]}
//	Anthropic  {"data":[{"type":"model","id":…,"display_name":…,"created_at":…}],"has_more":false,"first_id":…,"last_id":…}
//	Codex      {"models":[{"slug":…,"display_name":…,"supported_reasoning_levels":[],"shell_type":…,"truncation_policy":…}]}
//
// # What clients make of it
//
//   - A field that is zero is unknown. It is omitted or, if a form requires it, has the value that the client would
//     assume for an unknown model. The exception is base_instructions in Codex's form: see [Model].
//   - Codex rejects the whole list if one record lacks a field or has an unknown value. It uses the record whose slug
//     is the longest prefix of the model's name, so that "m" also applies to "m-large" if that has no record. It
//     requests the list only from servers with command authentication. For other servers, save the response to GET
//     /v1/models?client_version=1 in a file and name it in the setting model_catalog_json.
//   - Claude Code reads id and display_name, and skips IDs that do not start with claude or anthropic: give other
//     models an alias that does. It does not follow redirects and waits for 3 s.
//   - opencode, pi and OpenClaw read the context window from their own configuration and do not request the list.
//
// # Guarantees
//
//   - The same models yield the same bytes: nothing depends on the current time, and lists keep their order. [ETag]
//     returns an entity tag for the bytes.
//   - An ID may contain slashes, as on Hugging Face; [PathID] extracts it from a path. IDs are compared byte by byte.
//
// Sources: openai-go v3.96 and anthropic-sdk-go v2.13 for their forms, Claude Code's gateway protocol reference (2026-10),
// codex-rs protocol/src/openai_models.rs and models-manager in three states of 2026 (commit 8db0700 and two later ones), vLLM
// (max_model_len, root, parent) and Dynamo (context_window, max_output_tokens) for what they add.
package catalog
