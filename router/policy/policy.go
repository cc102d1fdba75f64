// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Policy computes what it costs to place a request on each worker. The router chooses the cheapest worker that is
// eligible; among equally cheap ones, the worker of the session, then the one with the fewest active blocks, then the one that
// got a request least recently. [Named] returns the policies of this package; users write others.
type Policy interface {
	// Name returns the policy's name in lower case with underscores.
	Name() string
	// Terms returns the names and units of the parts of a cost, at most len(Terms{}) of them, always the same.
	Terms() []Term
	// Costs sets the parts of each worker's cost: out[i] is for v.Workers[i], and zero before the call. Their sum is the
	// cost; a worker with an infinite cost or NaN is not chosen. The parts of workers that are not eligible are
	// ignored. The result must depend only on v and r, and neither may be changed or retained. The router calls
	// Costs with a lock held, so it must not call the router.
	Costs(v *View, r *Request, out []Terms)
}

// Term describes one part of a cost.
type Term struct {
	Name string // in lower case with underscores
	Unit string // such as "ms"; the terms of a policy need not have the same one
}

// Terms are the parts of a cost, in the order of [Policy.Terms]. They are added; a credit is negative.
type Terms [8]float64

// Sum returns the cost.
func (t *Terms) Sum() (sum float64) {
	for _, x := range t {
		sum += x
	}
	return sum
}

// The policies of this package.
var policies = [...]Policy{
	costMS{}, leastLoaded{}, roundRobin{}, random{}, powerOfTwo{}, consistentHash{}, sticky{}, lmetric{}, dynamo{}, llmd{},
}

// Default returns cost_ms; see the package comment.
func Default() Policy { return costMS{} }

// Named returns the policy with a name; the package comment lists them. The error lists the names.
func Named(name string) (Policy, error) {
	for _, p := range policies {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("policy: unknown name %q (want %s)", name, strings.Join(Names(), ", "))
}

// Names returns the names of the policies of this package.
func Names() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name())
	}
	slices.Sort(names)
	return names
}
