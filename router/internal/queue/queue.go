// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"math"
	"time"
)

// maxDebt limits how far ahead of its fair share a session or tenant can be.
const maxDebt = 2 * time.Minute

// Item is a waiting request. Set the exported fields, then pass it to [Queue.Add]; do not copy or change it after that.
type Item[T any] struct {
	Value           T
	Class           string
	Tenant, Session string
	Tier            uint32
	// Arrival and Due are times in nanoseconds of one clock.
	Arrival, Due int64
	// Expires is the time after which Expire removes the item; 0 means never.
	Expires int64

	charged  [2]int64 // of the tenant and the session, in nanoseconds
	serial   uint64
	at       int // in its session
	expiring int // in Queue.expiring
	in       *session[T]
}

// key is the place of an item in the order.
type key struct {
	tier   uint32
	due    int64
	serial uint64
}

func (a key) before(b key) bool {
	return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(a.due, b.due), cmp.Compare(a.serial, b.serial)) < 0
}

func (it *Item[T]) key() key               { return key{it.Tier, it.Due, it.serial} }
func (it *Item[T]) before(o *Item[T]) bool { return it.key().before(o.key()) }
func (it *Item[T]) place() *int            { return &it.at }

// account is what a session or tenant has used.
type account struct {
	paid     int64   // time until which it has used its share; never if it was not charged
	items    int     // that wait
	sessions int     // of a tenant: that have items
	weight   float64 // of a tenant that has items; 0 means the number of its sessions
}

// never is before all times, of which some are negative.
const never = math.MinInt64

// debt returns how much later an item comes that arrived at the given time.
func (a *account) debt(arrival int64) int64 {
	if a.paid <= arrival {
		return 0
	}
	return a.paid - arrival
}

type name struct{ tenant, session string }

// session holds the items of a session that are in one class.
type session[T any] struct {
	of      *tenant[T]
	name    name
	account *account
	items   heap[*Item[T]]
	key     key
	at      int
}

func (s *session[T]) before(o *session[T]) bool { return s.key.before(o.key) }
func (s *session[T]) place() *int               { return &s.at }

func (s *session[T]) now() key {
	first := s.items[0]
	k := first.key()
	if s.name.session != "" {
		k.due += s.account.debt(first.Arrival)
	}
	return k
}

// tenant holds the sessions of a tenant that have items in one class.
type tenant[T any] struct {
	of       *class[T]
	name     string
	account  *account
	sessions heap[*session[T]]
	byName   map[string]*session[T]
	key      key
	at       int
}

func (t *tenant[T]) before(o *tenant[T]) bool { return t.key.before(o.key) }
func (t *tenant[T]) place() *int              { return &t.at }

func (t *tenant[T]) now() key {
	first := t.sessions[0].items[0]
	k := first.key() // what its session has used only matters among the tenant's sessions
	k.due += t.account.debt(first.Arrival)
	return k
}

type class[T any] struct {
	name    string
	tenants heap[*tenant[T]]
	byName  map[string]*tenant[T]
	blocked uint64 // the round in which Block was called for it
}

type expiry[T any] struct{ *Item[T] }

func (e expiry[T]) before(o expiry[T]) bool {
	return cmp.Or(cmp.Compare(e.Expires, o.Expires), cmp.Compare(e.serial, o.serial)) < 0
}
func (e expiry[T]) place() *int { return &e.expiring }

// Queue holds the items that wait. Call Init first.
type Queue[T any] struct {
	weight   func(tenant string) float64
	length   int
	serial   uint64
	round    uint64
	classes  []*class[T]
	sessions map[name]*account
	tenants  map[string]*account
	waiting  int     // sessions with items, of all tenants
	weights  float64 // of the tenants with items
	sweep    int     // number of sessions at which accounts are removed that matter no longer
	expiring heap[expiry[T]]
}

// Options configure a [Queue].
type Options struct {
	// Weight returns the weight of a tenant; nil or a result that is not positive or not finite means the number of its sessions
	// that wait.
	Weight func(tenant string) float64
}

// Init makes the queue empty.
func (q *Queue[T]) Init(o Options) {
	*q = Queue[T]{weight: o.Weight, round: 1, sessions: make(map[name]*account), tenants: make(map[string]*account)}
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.length }

// Add adds an item, which must not be in a queue.
func (q *Queue[T]) Add(it *Item[T]) {
	if it.in != nil {
		panic("queue: item added twice")
	}
	q.serial++
	it.serial = q.serial
	q.length++
	c := q.class(it.Class)
	t := c.byName[it.Tenant]
	if t == nil {
		t = &tenant[T]{of: c, name: it.Tenant, account: lookup(q.tenants, it.Tenant), byName: make(map[string]*session[T]), at: -1}
		c.byName[it.Tenant] = t
	}
	n := name{it.Tenant, it.Session}
	s := t.byName[it.Session]
	if s == nil {
		s = &session[T]{of: t, name: n, account: lookup(q.sessions, n), at: -1}
		t.byName[it.Session] = s
	}
	if s.account.items++; s.account.items == 1 {
		t.account.sessions++
		q.waiting++
	}
	if t.account.items++; t.account.items == 1 && q.weight != nil {
		if w := q.weight(it.Tenant); w > 0 && !math.IsInf(w, 1) { // NaN would remain in the sum
			t.account.weight = w
			q.weights += w
		}
	}
	it.in = s
	s.items.push(it)
	q.update(s)
	if it.Expires != 0 {
		q.expiring.push(expiry[T]{it})
	}
}

func lookup[K comparable](m map[K]*account, k K) *account {
	a := m[k]
	if a == nil {
		a = &account{paid: never}
		m[k] = a
	}
	return a
}

func (q *Queue[T]) class(name string) *class[T] {
	for _, c := range q.classes {
		if c.name == name {
			return c
		}
	}
	c := &class[T]{name: name, byName: make(map[string]*tenant[T])}
	q.classes = append(q.classes, c)
	return c
}

// update puts the session, and its tenant, where they belong after its items or its account have changed.
func (q *Queue[T]) update(s *session[T]) {
	t := s.of
	switch {
	case len(s.items) == 0:
		if s.at >= 0 {
			t.sessions.remove(s)
		}
		delete(t.byName, s.name.session)
	case s.at < 0:
		s.key = s.now()
		t.sessions.push(s)
	default:
		s.key = s.now()
		t.sessions.fix(s)
	}
	c := t.of
	switch {
	case len(t.sessions) == 0:
		if t.at >= 0 {
			c.tenants.remove(t)
		}
		delete(c.byName, t.name)
	case t.at < 0:
		t.key = t.now()
		c.tenants.push(t)
	default:
		t.key = t.now()
		c.tenants.fix(t)
	}
	if len(c.tenants) == 0 {
		for i := range q.classes {
			if q.classes[i] == c {
				last := len(q.classes) - 1
				q.classes[i], q.classes[last] = q.classes[last], nil
				q.classes = q.classes[:last]
				break
			}
		}
	}
}

// Remove removes an item and reports whether it was in the queue. The order of the others is as if it had never been
// there.
func (q *Queue[T]) Remove(it *Item[T]) bool {
	s := it.in
	if s == nil {
		return false
	}
	it.in = nil
	q.length--
	s.items.remove(it)
	if it.Expires != 0 {
		q.expiring.remove(expiry[T]{it})
	}
	t := s.of
	if t.account.items--; t.account.items == 0 {
		q.weights -= t.account.weight
		t.account.weight = 0
		if t.account.paid == never {
			delete(q.tenants, t.name)
		}
	}
	if s.account.items--; s.account.items == 0 {
		t.account.sessions--
		q.waiting--
		if s.account.paid == never {
			delete(q.sessions, s.name)
		}
	}
	q.update(s)
	return true
}

// Next returns the first item of the classes that are not blocked, or nil.
func (q *Queue[T]) Next() *Item[T] {
	var best *tenant[T]
	for _, c := range q.classes {
		if c.blocked == q.round {
			continue
		}
		if t := c.first(); best == nil || t.key.before(best.key) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	return best.sessions[0].items[0]
}

// first returns the first tenant, after it has corrected the keys that come first.
func (c *class[T]) first() *tenant[T] {
	for {
		t := c.tenants[0]
		s := t.sessions[0]
		if k := s.now(); k != s.key {
			s.key = k
			t.sessions.fix(s)
		} else if k := t.now(); k != t.key {
			t.key = k
			c.tenants.fix(t)
		} else {
			return t
		}
	}
}

// Block excludes the class of an item from Next until Unblock.
func (q *Queue[T]) Block(it *Item[T]) { it.in.of.of.blocked = q.round }

// Unblock includes all classes in Next.
func (q *Queue[T]) Unblock() { q.round++ }

// Charge removes an item that was placed at the given time and charges its accounts. work is what it takes of a fleet
// of so many workers.
func (q *Queue[T]) Charge(it *Item[T], work time.Duration, workers int, now int64) {
	s := it.in
	t := s.of
	share := float64(work) * float64(q.waiting) / float64(max(workers, 1))
	part := share / float64(max(t.account.sessions, 1)) // of the tenant, by its number of sessions
	if w := t.account.weight; w > 0 {
		part = float64(work) * max(q.weights, w) / w / float64(max(workers, 1))
	}
	it.charged = [2]int64{charge(t.account, part, now), charge(s.account, share, now)}
	q.Remove(it)
	if len(s.items) > 0 {
		q.update(s)
	} else if len(t.sessions) > 0 {
		q.update(t.sessions[0])
	}
	q.forget(now)
}

// charge returns by how much the account has risen.
func charge(a *account, ns float64, now int64) int64 {
	from := max(a.paid, now)
	a.paid = min(from+int64(min(ns, float64(time.Hour))), now+int64(maxDebt))
	return a.paid - from
}

// Refund takes back what Charge has charged for an item. It does nothing for other items.
func (q *Queue[T]) Refund(it *Item[T]) {
	if it.charged == [2]int64{} {
		return
	}
	if a := q.tenants[it.Tenant]; a != nil && a.paid != never {
		a.paid -= it.charged[0]
	}
	if a := q.sessions[name{it.Tenant, it.Session}]; a != nil && a.paid != never {
		a.paid -= it.charged[1]
	}
	it.charged = [2]int64{}
	for _, c := range q.classes { // keys that become earlier are not found by first
		t := c.byName[it.Tenant]
		if t == nil {
			continue
		}
		s := t.byName[it.Session]
		if s == nil {
			s = t.sessions[0]
		}
		q.update(s)
	}
}

// forget removes accounts that matter no longer when there are many.
func (q *Queue[T]) forget(now int64) {
	if len(q.sessions) < max(q.sweep, 1024) {
		return
	}
	for n, a := range q.sessions {
		if a.items == 0 && a.paid <= now {
			delete(q.sessions, n)
		}
	}
	for n, a := range q.tenants {
		if a.items == 0 && a.paid <= now {
			delete(q.tenants, n)
		}
	}
	q.sweep = 2 * len(q.sessions)
}

// Expire removes an item that has expired and returns it, or nil if there is none.
func (q *Queue[T]) Expire(now int64) *Item[T] {
	if len(q.expiring) == 0 || q.expiring[0].Expires > now {
		return nil
	}
	it := q.expiring[0].Item
	q.Remove(it)
	return it
}

// Expires returns when the next item expires, or false if none does.
func (q *Queue[T]) Expires() (at int64, ok bool) {
	if len(q.expiring) == 0 {
		return 0, false
	}
	return q.expiring[0].Expires, true
}
