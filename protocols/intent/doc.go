// SPDX-License-Identifier: Apache-2.0

// Package intent is what a harness knows about a request and the serving side should hear: how urgent it is, which session it
// belongs to, how long the answer will be.
//
// An [Intent] says what the caller wishes, not what it gets. Whoever serves decides, after policy per tenant, what a caller may ask.
// The zero Intent says nothing, and everything works without one.
//
// # Terminology
//
//   - session: the requests of one conversation of one agent. They share a growing prompt.
//   - parent: the session that started this one, as for a sub-agent.
package intent
