// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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
	// ignored. The result must depend only on v, r and what the policy has observed; v and r must not be changed or
	// retained. The router may call Costs concurrently, except if the policy is an [Observer]; Costs must not call the router.
	Costs(v *View, r *Request, out []Terms)
}

// Observer is a [Policy] that learns from the requests that were placed. The router calls these methods one at a time and
// never together with Costs. turn is [View.Turn] when the request was placed, which identifies it.
type Observer interface {
	Policy
	// Placed reports that a request was placed on v.Workers[i]. v and r are valid until it returns.
	Placed(v *View, r *Request, i int)
	// FirstToken reports the first token of a request.
	FirstToken(turn uint64, now time.Time)
	// Ended reports the end of a request, of whose prompt the engine had cached tokens in its cache, or -1 if it did
	// not report them, and which has output tokens, or -1 if it failed or was canceled. It is called exactly once.
	Ended(turn uint64, now time.Time, cached, output int)
}

// Term describes one part of a cost.
type Term struct {
	Name string // in lower case with underscores
	Unit string // such as "ms"; the terms of a policy need not have the same one
}

// Terms are the parts of a cost, in the order of [Policy.Terms]. They are added; a credit is negative.
type Terms [8]float64

// Sum returns the cost.
func (t *Terms) Sum() float64 {
	return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]))
}

// makers make the policies of this package, with options; see [Named].
var makers = map[string]func(options) Policy{
	"cost_ms":         newCost,
	"least_loaded":    func(options) Policy { return leastLoaded{} },
	"round_robin":     func(options) Policy { return roundRobin{} },
	"random":          func(options) Policy { return random{} },
	"power_of_two":    func(options) Policy { return powerOfTwo{} },
	"consistent_hash": func(options) Policy { return consistentHash{} },
	"sticky":          func(options) Policy { return sticky{} },
	"lmetric":         func(options) Policy { return lmetric{} },
	"dynamo":          newDynamo,
	"llm_d":           newLLMD,
	"prefix_lru":      newPrefixLRU,
	"smg":             newSMG,
	"preble":          newPreble,
	"thompson":        newThompson,
}

// Default returns cost_ms; see the package comment.
func Default() Policy { return newCost(options{}) }

// Named returns a new policy with a name, to which options can be added, as in "dynamo:scale=4,decay=0.5"; the package
// comment lists both. The error lists the names.
func Named(name string) (Policy, error) {
	base, rest, _ := strings.Cut(name, ":")
	create := makers[base]
	if create == nil {
		return nil, fmt.Errorf("policy: unknown name %q (want %s)", name, strings.Join(Names(), ", "))
	}
	o := options{given: make(map[string]float64)}
	for part := range strings.SplitSeq(rest, ",") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0) {
			return nil, fmt.Errorf("policy: %s: option %q must be a number that is not negative (got %q)", base, key, value)
		}
		o.given[key] = x
	}
	p := create(o)
	for key := range o.given {
		return nil, fmt.Errorf("policy: %s: unknown option %q", base, key)
	}
	return p, nil
}

// options are the numbers given for a policy. Those that were read are removed.
type options struct{ given map[string]float64 }

// number returns the option with a name, or def if it is not given.
func (o options) number(name string, def float64) float64 {
	if x, ok := o.given[name]; ok {
		delete(o.given, name)
		return x
	}
	return def
}

// Names returns the names of the policies of this package.
func Names() []string {
	var names []string
	for name := range makers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
