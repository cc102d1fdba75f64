// SPDX-License-Identifier: Apache-2.0

// Package ledger tracks the load of one worker: the requests placed on it that have not ended.
//
// # Terminology
//
//   - entry: one request placed on the worker. It first waits for its first token, then decodes, and is then released.
//   - prefill: the work up to the first token; its duration is estimated when the request is placed.
//   - wait: the predicted time until a request placed now would begin its prefill.
//
// The model is a line of prefills served one after another. The one at the head has been running since it came to the head; the
// others add their whole estimate. A first token ends an entry's prefill wherever it is in the line, so errors of the estimate do not add up.
//
// # Guarantees
//
// The account is a sum of its entries: when every entry is released, every figure is zero. Releasing twice, or a first token after the
// release, changes nothing. A [Ledger] reads no clock. All calls cost O(1) and do not allocate.
package ledger
