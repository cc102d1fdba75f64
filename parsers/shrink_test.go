// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/weft-go/weft/parsers"
)

// trial is one output with all that decides how it is parsed.
type trial struct {
	family  string
	text    string
	opt     parsers.Options
	stopped bool // the engine swallowed the last terminator
	seed    uint64
}

func (c trial) String() string {
	o := c.opt
	o.Tools, o.Policy = nil, parsers.Policy{}
	return fmt.Sprintf("%s %q, stopped %v, %s, policy %s", c.family, c.text, c.stopped, set(reflect.ValueOf(o)), c.opt.Policy)
}

// set renders the fields of a struct that are not zero.
func set(v reflect.Value) string {
	s := ""
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			s += fmt.Sprintf(" %s:%+v", v.Type().Field(i).Name, f.Interface())
		}
	}
	return "{" + s + " }"
}

// verdict is a test that notes a failure instead of reporting it.
type verdict struct {
	testing.TB
	why string
}

func (v *verdict) Helper()                      {}
func (v *verdict) Logf(string, ...any)          {}
func (v *verdict) Failed() bool                 { return v.why != "" }
func (v *verdict) Errorf(f string, args ...any) { v.why = fmt.Sprintf(f, args...) }
func (v *verdict) Fatal(args ...any)            { v.why = fmt.Sprint(args...); v.FailNow() }
func (v *verdict) Fatalf(f string, args ...any) { v.why = fmt.Sprintf(f, args...); v.FailNow() }
func (v *verdict) FailNow()                     { panic(v) }

// judge returns what is wrong with c, or "".
func judge(t testing.TB, c trial, check func(testing.TB, trial)) (why string) {
	v := &verdict{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(v) {
			stack := make([]byte, 4096)
			why = fmt.Sprintf("panic: %v\n%s", r, stack[:runtime.Stack(stack, false)])
		} else {
			why = v.why
		}
	}()
	check(v, c)
	return v.why
}

// verify runs check on c. A failure is made as small as it gets before it is reported.
func verify(t testing.TB, c trial, check func(testing.TB, trial)) {
	t.Helper()
	why := judge(t, c, check)
	if why == "" {
		return
	}
	keep := func(smaller trial) bool {
		w := judge(t, smaller, check)
		if w != "" {
			c, why = smaller, w
		}
		return w != ""
	}
	for again := true; again; {
		again = false
		for n := max(1, len(c.text)/2); n > 0; n /= 2 {
			for i := 0; i+n <= len(c.text); {
				smaller := c
				smaller.text = c.text[:i] + c.text[i+n:]
				if keep(smaller) {
					again = true
				} else {
					i++
				}
			}
		}
		zero := func(fields func(*trial) reflect.Value) {
			for i := range fields(&c).NumField() {
				smaller := c
				f := fields(&smaller).Field(i)
				if name := fields(&c).Type().Field(i).Name; f.IsZero() || name == "Policy" || name == "Tools" || name == "Tool" {
					continue
				}
				f.SetZero()
				again = keep(smaller) || again
			}
		}
		zero(func(c *trial) reflect.Value { return reflect.ValueOf(&c.opt).Elem() })
		zero(func(c *trial) reflect.Value { return reflect.ValueOf(&c.opt.Limits).Elem() })
		for _, word := range strings.Fields(c.opt.Policy.String())[1:] {
			smaller := c
			smaller.opt.Policy = policyOf(strings.Replace(c.opt.Policy.String(), " "+word, "", 1))
			again = smaller.opt.Policy != c.opt.Policy && keep(smaller) || again
		}
		if smaller := c; smaller.stopped {
			smaller.stopped = false
			again = keep(smaller) || again
		}
	}
	t.Fatalf("%s\n%s", c, why)
}
