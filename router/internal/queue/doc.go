// SPDX-License-Identifier: Apache-2.0

// Package queue orders requests that wait for a worker.
//
// # Order
//
// Items of a higher tier come first. In a tier, the item with the earliest due time plus debt comes first:
//
//	due    set by the caller, from arrival, priority, length and target time
//	debt   how far the item's tenant, and among the tenant's items the session, is ahead of its fair share
//
// All are times of the clock. So a waiting item overtakes newer ones in the end, whatever their priority: ageing needs no
// updates.
//
// # Fair shares
//
// A session and a tenant have an account with the time until which they have used their share. Taking an item advances it by
// the work of the item times the number of sessions that wait: with ten sessions waiting, a second of a fleet's work
// uses the share of ten seconds. A tenant's share is proportional to the number of its sessions that wait, or to
// its weight. Accounts are only charged while others wait, an idle account gains nothing, and debt is limited, so
// that wrong estimates do not exclude anybody for long.
//
// # Classes
//
// Items of one class may be placed on the same workers. Those of another class do not wait for them.
//
// # Structure
//
//	class -> heap of tenants -> heap of sessions -> heap of items
//
// The key of a tenant or session is that of its first item plus the own debt. Charging an account can only make keys later;
// keys in other classes are corrected when they come first.
//
// # Cost
//
// All calls cost O(log n) for n items, and Next also O(classes). A [Queue] uses no clock and is not safe for concurrent use.
package queue
