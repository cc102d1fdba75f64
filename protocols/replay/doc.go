// SPDX-License-Identifier: Apache-2.0

// Package replay selects the past reasoning to include in a prompt and verifies that clients return it unmodified.
//
// Models differ: some were trained with all of their past reasoning in the prompt, some with the reasoning of the
// current task only, some with none. Dropping reasoning changes the prompt before later turns, so it also determines
// how much of a cached prefix can be reused.
//
// # Terms
//
// A [Turn] is one step of a conversation: a start (the user asks something), results of tools, a turn of the assistant,
// or system text. A chain is the sequence of assistant turns from one start to the next; it is open until it has a
// final turn.
//
//	start   assistant   results       assistant   start   assistant   results
//	"why?"  think call  result        think text  "so?"   think call  result
//	        └─ a closed chain ───────────────┘            └─ an open chain ──
//
// A turn without calls is final. The reasoning of a turn is kept or dropped as a whole, because reasoning between two
// calls explains the second call.
//
// A [Rule] specifies what a family of models, or a template, keeps. [Infer] determines the rule of a template from
// observations of a probe. A [Preference] holds the settings of a request. [NewPlan] combines them into a [Plan], in
// this order of precedence:
//
//	a template variable in the request            preserve_thinking, clear_thinking, drop_thinking …
//	a field of the API                            reasoning.context, clear_thinking_20251015
//	the configured rule of the model
//	the observed behavior of the template
//	the rule of the family
//
// Observed behavior takes precedence over the family's rule, because it determines the prompt. The plan has an [Outcome] for each turn.
//
// # Signatures
//
// A client receives reasoning and returns it with its next request. A [Signer] creates a token to send with it: signed,
// for text that the client receives, or sealed, which contains the encrypted text. When the client returns the
// reasoning, [Signer.Open] verifies it and returns a [Verdict].
//
// # Cost
//
// Plan.AppendOutcomes and Rule.AppendKept take time linear in the number of turns. Functions and immutable values of
// this package are safe for concurrent use.
package replay
