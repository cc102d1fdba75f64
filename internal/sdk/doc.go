// SPDX-License-Identifier: Apache-2.0

// Package sdk holds no code: its tests set the official Go SDKs of OpenAI and Anthropic against the encoders and decoders of
// protocols and against the gateway. What an SDK makes of our bytes is compared with what was meant, and what an SDK sends is
// compared with what we read.
//
// It is a module of its own, outside the workspace, because compiling the SDKs takes minutes.
package sdk
