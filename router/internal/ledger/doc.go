// SPDX-License-Identifier: Apache-2.0

// Package ledger tracks the load of one worker: the requests placed on it that have not ended.
//
// # Terminology
//
//   - entry: one request placed on the worker. It first waits for its first token, then decodes, and is then released.
//   - prefill: the work up to the first token; its duration is estimated when the request is placed.
//   - mark: the sequence hash of a block. As it depends on all tokens before it, requests with the same mark share the blocks
//     up to it, which count once.
//   - wait: the predicted time until a request placed now would begin its prefill.
//
// The model is a queue of prefills that run one after another. The prefill at the head has been running since it became
// the head; the others add their whole estimate. A first token ends an entry's prefill at any position in the queue, so
// estimation errors do not accumulate.
//
// # Guarantees
//
// The load is the sum of the entries: when all entries are released, all values are zero. A second release, or a first
// token after the release, has no effect. A [Ledger] uses no clock. All calls cost O(1), Reserve and Release also O(marks).
package ledger
