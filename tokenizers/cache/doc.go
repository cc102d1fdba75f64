// SPDX-License-Identifier: Apache-2.0

// Package cache caches the IDs of prompts, so that only the new part of a prompt that begins like an earlier one is
// encoded. The results equal the tokenizer's, unless the caller passes a prefix of [Cache.Sampled].
//
// # How
//
// A text is split only where a [tokenizers.Splitter] has proved that the IDs on both sides do not depend on each other:
// after an added token such as <|im_start|>, or between a newline and a letter. A node of the tree holds the text and the
// IDs between two such positions, so N turns of a conversation take O(N) memory:
//
//	namespace ─▶ 4.1 KB ─▶ 4.3 KB ─▶ 4.0 KB ─▶ …   regular: the first position 4 KB after the last one
//	                │          └───▶ 1.2 KB ─▶ 0.9 KB       tails: the last position of each prompt
//	                └───▶ 4.2 KB ─▶ …                       another conversation
//
// A lookup compares the bytes, and which of them are trusted, from node to node; nothing is hashed, so no two texts are
// ever confused. The children of a node form a crit-bit tree, which finds the only child that can match, regardless of
// their number. Regular positions depend only on the text, so two prompts with a common prefix share nodes, in any
// order; with tails, a growing conversation finds all of its last turn. A child that requires a certain next byte (see
// [tokenizers.Boundary]) is used only before one.
//
// # Guarantees
//
//   - Exact: IDs equal the tokenizer's, for any text, order of calls and eviction. If the tokenizer's texts cannot be
//     split, [Cache.Err] reports why and nothing is stored.
//   - Bounded: texts, IDs and overhead together stay within [Options.MaxBytes], except that a call may temporarily
//     exceed it by the size of its text. W-TinyLFU (github.com/maypok86/otter) selects what to evict, so one pass over
//     many new prompts does not evict those in use. Longer prefixes of an evicted one are evicted too.
//     Prefixes that are not used can be evicted earlier ([Cache.Trim]).
//   - Isolated: namespaces share no nodes. Use one for each tenant, or a secret salt: within a namespace the time of a
//     call reveals whether its prefix is cached. The budget is shared, so a tenant can evict another tenant's prefixes,
//     but cannot read them.
//   - Calls that need the same uncached text at once wait for the first of them.
//
// A hit compares the text and copies the IDs, about 0.05 ns per byte of text together, and allocates nothing.
// [Cache.AppendPrefixes] does not copy. Values can be attached to prefixes ([Prefix.SetValue]), such as their block hashes,
// which then need not be computed again.
package cache
