// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/wire"
)

// Options selects what [Stabilize] does in addition to dropping the billing header. Everything is off by default.
type Options struct {
	// Canonical rewrites parts of the body that are not in the prompt, so that requests with the same prompt have the
	// same turns and tools, byte for byte. It drops cache breakpoints (cache_control, prompt_cache_breakpoint),
	// converts content that is a list of one text to a string, and drops IDs of messages and of Responses API items,
	// but not call IDs. It does not reorder fields, because models see their order in schemas and arguments.
	//
	// Read the hints of a request before, because breakpoints are hints. Do not use it for an upstream API that caches
	// by breakpoints or refers to items by ID: OpenAI's requires the ID of a reasoning item.
	Canonical bool
	// Relocate moves text that differs between users, directories and days to the end of the leading system text, after
	// the line "# About this session". "(see the end)" replaces a value within a sentence. Rules specify what is moved.
	// If the content of the last leading system or developer message is a list, the moved text is a new block, after
	// any cache breakpoint; otherwise it is appended to the string. If there are more than 256 fragments, none is
	// moved. The prompt changes, so use it for all requests of a session or for none.
	Relocate bool
	// DeferredLast moves tools with defer_loading after all others and preserves their order. Harnesses insert them in
	// the middle.
	DeferredLast bool
	// SortTools sorts tools by name, for tool servers that list them in another order after every reconnect.
	SortTools bool
	// Rules specify the fragments. nil means [DefaultRules].
	Rules Rules
	// Prompt is the order of the template. It affects Report.Stable, and Relocate does not change tools that come after
	// the system text.
	Prompt Prompt
}

// Report lists the changes that [Stabilize] made.
type Report struct {
	// Changes lists the removed headers, the moved fragments, the reordered tools, and then one entry per canonical
	// rule.
	Changes []Change
	// Stable is the end of the stable prefix after the changes. It is zero if Stabilize was called without options.
	Stable Stable
}

// Change is one change of a request.
type Change struct {
	Action string // removed, move, point, respelt (bytes changed that are not in the prompt) or ordered (a tool was moved)
	Rule   string // ID of the rule, for example claude-code/billing, canonical/cache or deferred-last
	// Path is the path of the block or tool, for example system[0], or "" in a built request. Offset is its offset in
	// the decoded body, or -1 in a built request. For a canonical rule, both refer to its first change.
	Path   string
	Offset int64
	// Text is the part of the request that was removed or moved, unescaped, or the name of a tool that was moved. It is
	// "" if Action is respelt. It may share memory with the request.
	Text  string
	Bytes int  // length of Text or, if Action is respelt, bytes removed from the body
	Count int  // number of edits; more than 1 only for canonical rules
	whole bool // the whole block was removed
}

// Bytes returns the number of bytes of text that were removed: the sum of Bytes over the Changes with Action removed.
func (r Report) Bytes() int {
	n := 0
	for i := range r.Changes {
		if r.Changes[i].Action == actRemoved {
			n += r.Changes[i].Bytes
		}
	}
	return n
}

// Stable is the end of the part of a prompt that other requests of the same harness and version share.
type Stable struct {
	// Offset is the offset in the canonical prompt (see the package comment) of the first fragment that is not static
	// or is part of the conversation, or the length of the prompt if absent.
	Offset int64
	Class  string // class of that fragment, as in [Divergence]; "" if absent
	Cause  string // what the fragment contains, as in [Divergence], or a cause in your own [Rules]
	Path   string // path of its block
}

// Stabilize removes the billing header from the start of the system text, by the rules in the package comment, and then
// makes the changes that o selects. nil options select none. It returns the changes made so far, and an error if an
// edit failed.
//
// A second call with the same options changes nothing. Stabilize does not change text of a user, a tool or the model.
//
// Cost: without options, Stabilize examines the first system block and, if it has a header, makes one edit. Each option
// adds a pass over the request.
func Stabilize(r *block.Request, o *Options) (Report, error) {
	before := sizeOf(r)
	changes, err := strip(r)
	if err != nil || o == nil {
		return Report{Changes: changes}, err
	}
	return apply(r, o, changes, before)
}

// AppendStable appends the body of a request of an API as [Stabilize] changes it, for programs that pass requests on. The
// other bytes are preserved, and the caller may modify body afterwards. If body is not a valid request of the API, the error
// is a *[block.Error]. With an error, AppendStable appends body as it is.
func AppendStable(dst []byte, api *wire.API, body []byte, o *Options) ([]byte, Report, error) {
	r, err := api.Decode(slices.Clone(body), nil) // the report may share memory with it
	if err != nil {
		return append(dst, body...), Report{}, err
	}
	report, err := Stabilize(r, o)
	if err != nil {
		return append(dst, body...), report, err
	}
	out, err := r.AppendBody(dst)
	return out, report, err
}

// apply makes the changes that o selects. before is the length of the body before the header was removed.
func apply(r *block.Request, o *Options, changes []Change, before int) (Report, error) {
	rep := Report{Changes: changes}
	w := work{r: r, rep: &rep}
	w.locate(before)
	rules := o.Rules
	if rules == nil {
		rules = DefaultRules()
	}
	if o.Relocate {
		w.plan(o, rules)
	}
	if o.DeferredLast || o.SortTools {
		w.order(o)
	}
	if err := reparse(r); err != nil {
		return rep, err
	}
	w.locate(before)
	if o.Canonical {
		if err := w.canonical(); err != nil {
			return rep, err
		}
	}
	if o.Relocate {
		if err := w.relocate(); err != nil {
			return rep, err
		}
		if o.Canonical && len(w.moves) > 0 { // inserted text may not be in canonical form
			done := rep.Changes
			if err := w.canonical(); err != nil {
				return rep, err
			}
			rep.Changes = done
		}
	}
	if o.DeferredLast || o.SortTools {
		if err := w.setTools(); err != nil {
			return rep, err
		}
	}
	if err := reparse(r); err != nil {
		return rep, err
	}
	rep.Stable = stableEnd(r, o.Prompt, rules)
	return rep, nil
}

// sizeOf returns the length of the body as last parsed, in bytes. It is 0 for a request without a body.
func sizeOf(r *block.Request) int {
	if d := codec.DocOf(r); d != nil {
		return d.Size()
	}
	return 0
}

// reparse parses an edited body again, so that all positions refer to one document.
func reparse(r *block.Request) error {
	if codec.DocOf(r) == nil {
		return nil
	}
	return codec.Rewrite(r, func(*jsonscan.Edits, jsonscan.Value) bool { return false })
}

// work is the state of one call of Stabilize.
type work struct {
	r     *block.Request
	rep   *Report
	from  int64 // where the header was, or where the rest of its block starts now
	was   int64 // where that block started, or 0 if nothing of it is left
	gone  int64 // bytes of the body that were removed
	moves []move
	tail  []string // lines to add to the end of the system text
	mark  bool     // whether the system text contains tailMark
	tools []unit   // the new order, or nil if unchanged
}

// move is the new text of one block or tool.
type move struct {
	turn, block int // turn is -1 for the description of tool number block
	text        string
}

// locate records where the header was and how many bytes were removed. Before settle, positions refer to the decoded
// body, so the number is 0.
func (w *work) locate(before int) {
	turns := w.r.Turns()
	w.gone, w.from, w.was = int64(before-sizeOf(w.r)), 0, 0
	n := len(w.rep.Changes)
	for n > 0 && w.rep.Changes[n-1].Rule != billingRule {
		n--
	}
	if n == 0 {
		return
	}
	w.from = w.rep.Changes[0].Offset
	if last := &w.rep.Changes[n-1]; !last.whole {
		for b := range opening(turns) {
			w.from, w.was = offsetOf(b.At), last.Offset
			break
		}
	}
}

// offset returns the offset in the body as it was decoded.
func (w *work) offset(at block.Ref) int64 {
	off := offsetOf(at)
	switch {
	case off == w.from && w.was > 0:
		return w.was
	case off >= w.from && off >= 0:
		return off + w.gone
	}
	return off
}

// leading returns the number of system and developer turns at the start.
func leading(turns []block.Turn) int {
	n := slices.IndexFunc(turns, func(t block.Turn) bool { return t.Role != block.RoleSystem && t.Role != block.RoleDeveloper })
	if n < 0 {
		return len(turns)
	}
	return n
}
