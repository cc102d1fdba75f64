// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"fmt"
	"slices"
	"strings"
)

// kind is a dialect in which hints can be sent.
type kind uint8

const (
	noKind kind = iota
	dynamo
	vllm
	sglang
	llmd
	gaie
	openAI
	anthropic
	weft
)

var kindNames = []string{"none", "dynamo", "vllm", "sglang", "llm-d", "gaie", "openai", "anthropic", "weft"}

func (k kind) String() string { return kindNames[k] }

// Dialects returns the names of the dialects in which hints can be sent:
//
//	dynamo      NVIDIA Dynamo's frontend
//	vllm        vLLM's OpenAI server
//	sglang      SGLang's OpenAI server
//	llm-d       llm-d router from 0.8
//	gaie        endpoint picker of the Gateway API inference extension, llm-d router before 0.8
//	openai      OpenAI's API
//	anthropic   Anthropic's API
//	weft        our own, see the package comment
func Dialects() []string { return slices.Clone(kindNames[1:]) }

// features is a bit set of capabilities that depend on a target's configuration or model.
type features uint16

const (
	priorityScheduling features = 1 << iota
	lowValuesFirst
	thinkingBudget
	sessionField
	cacheOptions
	cacheScope
	fastMode
	buyPriority
	inHeaders
)

var featureNames = []string{
	"priority scheduling", "low values first", "thinking budget", "session field", "cache options", "cache scope", "fast mode",
	"buy priority", "headers",
}

// String returns the names of the features.
func (f features) String() string {
	var list []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

// Target describes a server that receives requests with hints. It is immutable and safe for concurrent use by multiple
// goroutines.
type Target struct {
	kind     kind
	version  string
	features features
}

// NewTarget returns a Target for one of the [Dialects]. Spaces and underscores in the name of the dialect are treated as dashes.
//
// version is the target's version, such as 1.3.0 or v0.11. "" means the newest known; an invalid version is treated as the
// oldest. The features are the names of capabilities that depend on the target's configuration or model. Dashes and underscores
// in them are treated as spaces.
//
//	priority scheduling   vLLM's --scheduling-policy priority and SGLang's --enable-priority-scheduling; without it, vLLM
//	                      refuses every request with a priority
//	low values first      SGLang's --schedule-low-priority-values-first
//	thinking budget       vLLM knows where the model's reasoning ends; without it, it refuses a budget
//	session field         vLLM is new enough to have the field session_id, SGLang has --enable-session-radix-cache
//	cache options         the OpenAI model takes prompt_cache_options and prompt_cache_breakpoint, and not
//	                      prompt_cache_retention: gpt-5.6 and later
//	cache scope           Anthropic's beta prompt-caching-scope is on; without it, a scope is refused
//	fast mode             the Anthropic model takes speed; some need a beta header as well
//	buy priority          a priority may be turned into OpenAI's service_tier, which changes the price
//	headers               our own dialect is sent in headers instead of the body
func NewTarget(dialect, version string, features ...string) (*Target, error) {
	k := kindOf(dialect)
	if k == noKind {
		return nil, fmt.Errorf("intent: unknown dialect %q: the dialects are %s", dialect, strings.Join(Dialects(), ", "))
	}
	t := &Target{kind: k, version: version}
	for _, name := range features {
		i := slices.IndexFunc(featureNames, func(f string) bool { return f == unspaced(name) })
		if i < 0 {
			return nil, fmt.Errorf("intent: unknown feature %q: the features are %s", name, strings.Join(featureNames, ", "))
		}
		t.features |= 1 << i
	}
	return t, nil
}

// kindOf returns the dialect with the given name, or noKind.
func kindOf(name string) kind {
	for i, k := range kindNames[1:] {
		if unspaced(k) == unspaced(name) {
			return kind(i + 1)
		}
	}
	return noKind
}

// Capability describes how one hint is sent in a dialect.
type Capability struct {
	Hint     string   // name, see [Hints]
	As       string   // the header, or the path of the field of the body
	Since    string   // the first version that supports it, or "" for all
	Needs    string   // the names of the required features, separated by ", "
	Polarity Polarity // of the hint priority
}

// capability is a row of a dialect's table.
type capability struct {
	hint     hint
	as       string
	version  string // the first that supports it
	features features
	polarity Polarity
	send     func(*sender)
}

// rows returns the table of a dialect. Emit sends only what is in it.
func (k kind) rows() []capability {
	switch k {
	case dynamo:
		return dynamoRows
	case vllm:
		return vllmRows
	case sglang:
		return sglangRows
	case llmd:
		return llmdRows
	case gaie:
		return gaieRows
	case openAI:
		return openAIRows
	case anthropic:
		return anthropicRows
	case weft:
		return weftRows
	}
	return nil
}

// Capabilities returns how a dialect sends each hint that it supports in any version and with any features, in the
// order listed at [Hints]. It returns nil if the dialect is unknown.
func Capabilities(dialect string) []Capability {
	var out []Capability
	rows := slices.Clone(kindOf(dialect).rows())
	slices.SortFunc(rows, func(a, b capability) int { return int(a.hint) - int(b.hint) })
	for _, c := range rows {
		out = append(out, c.public())
	}
	return out
}

func (c *capability) public() Capability {
	return Capability{Hint: c.hint.String(), As: c.as, Since: c.version, Needs: c.features.String(), Polarity: c.polarity}
}

// Lookup returns how t receives the named hint. ok is false if its dialect, version and features do not support the
// hint. Even if they do, the dialect may not support every value.
func (t *Target) Lookup(name string) (c Capability, ok bool) {
	h, ok := lookup(name)
	if !ok {
		return Capability{}, false
	}
	row, _ := t.find(h)
	if row == nil {
		return Capability{}, false
	}
	c = row.public()
	if h == hintPriority && t.features&lowValuesFirst != 0 && t.kind == sglang {
		c.Polarity = LowerSooner
	}
	return c, true
}

// find returns the row for a hint, or nil and the reason why t does not support it.
func (t *Target) find(h hint) (*capability, string) {
	rows := t.kind.rows()
	i := slices.IndexFunc(rows, func(c capability) bool { return c.hint == h })
	switch {
	case i < 0:
		return nil, t.kind.String() + " does not support it"
	case rows[i].version != "" && t.version != "" && older(t.version, rows[i].version):
		return nil, t.kind.String() + " supports it since " + rows[i].version
	case t.features&rows[i].features != rows[i].features:
		return nil, t.kind.String() + " needs the feature " + (rows[i].features &^ t.features).String()
	}
	return &rows[i], ""
}

// older reports whether version a is before b. It compares only the numbers: v1.3.0-rc1 equals 1.3.0.
func older(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) < 0
}

func numbers(version string) []int {
	out := make([]int, 3)
	_, _ = fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d.%d", &out[0], &out[1], &out[2])
	return out
}
