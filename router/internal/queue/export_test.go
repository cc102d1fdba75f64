// SPDX-License-Identifier: Apache-2.0

package queue

// Accounts returns the number of accounts of sessions and tenants.
func (q *Queue[T]) Accounts() int { return len(q.sessions) + len(q.tenants) }
