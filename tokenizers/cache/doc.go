// SPDX-License-Identifier: Apache-2.0

// Package cache keeps the ids of prompts, so that the next prompt that begins like one before is not
// encoded from its start again. What it returns equals what the tokenizer returns, always.
//
// # How
//
// A text is cut only where [tokenizers.Cutter] has proved that ids on both sides do not depend on each
// other: after an added token such as <|im_start|>, between a newline and a letter. A node of the tree holds
// the text and the ids between two cut points, so N turns of a conversation take O(N) memory:
//
//	namespace ─▶ 4.1 KB ─▶ 4.3 KB ─▶ 4.0 KB ─▶ …   regular: the first cut point 4 KB after the last one
//	                │          └───▶ 1.2 KB ─▶ 0.9 KB       tails: the last cut point of each prompt
//	                └───▶ 4.2 KB ─▶ …                       another conversation
//
// A look-up compares the bytes and their provenance from node to node; nothing is hashed and no two
// texts are ever taken for each other. The children of a node form a crit-bit tree, which names the one
// child that can match however many there are. Regular cut points depend on the text alone, so two
// prompts with a common beginning meet in the same nodes, whoever came first; tails let a growing conversation
// find all of its last turn. A child that needs a certain next byte (see [tokenizers.CutKind]) is taken only
// before one.
//
// # Guarantees
//
//   - Exact: ids are those of the tokenizer, for any text, order of calls and eviction. Where the tokenizer
//     has no safe cut point, [Cache.Off] says so and nothing is kept.
//   - Bounded: texts, ids and overhead together stay within Options.MaxBytes (a call may pass it by what it is
//     storing). What to drop is decided by W-TinyLFU (github.com/maypok86/otter), so one pass over many new
//     prompts does not push out those in use. When a node goes, what hangs on it goes.
//   - Isolated: namespaces share no nodes. Use one for each tenant, or a secret salt: within a namespace
//     the time of a call tells whether its prefix is known. The budget is common, so a tenant can push out
//     what another one keeps, but cannot read it.
//   - Calls that need the same unknown text at once wait for the first of them.
//
// A hit compares the text and copies the ids, about 0.05 ns per byte of text together, and
// allocates nothing. [Cache.AppendCuts] leaves the copy out. Values can be attached to cut points
// ([Cut.SetValue]): the block hashes of a prefix, for example, which then need not be computed again.
package cache
