// SPDX-License-Identifier: Apache-2.0

package preamble_test

import (
	"fmt"
	"log"
	"os"

	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

func ExampleStabilize() {
	r, err := messages.Decode([]byte(`{"system":[`+
		`{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=97bd6;"},`+
		`{"type":"text","text":"You are an agent."}],"messages":[]}`), nil)
	if err != nil {
		panic(err)
	}
	report, err := preamble.Stabilize(r, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Changes[0].Path, report.Changes[0].Offset)
	body, _ := r.AppendBody(nil)
	fmt.Println(string(body))
	// Output:
	// system[0] 11
	// {"system":[{"type":"text","text":"You are an agent."}],"messages":[]}
}

func ExampleAppendStable() {
	body, err := stable("/v1/messages", []byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],`+
		`"system":"x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=97bd6;\nYou are an agent.\nToday's date is 2026-11-22.\nBe brief."}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(body))
	// Output:
	// removed claude-code/billing in system: 63 bytes: "x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=97bd6;\n"
	// move claude-code/date in system: 27 bytes: "Today's date is 2026-11-22."
	// {"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"system":"You are an agent.\nBe brief.\n\n# About this session\nToday's date is 2026-11-22."}
}

// stable returns the body of a request to path as a proxy passes it on.
func stable(path string, body []byte) ([]byte, error) {
	log := log.New(os.Stdout, "", 0)
	api, err := wire.Lookup(path)
	if err != nil {
		return body, nil // another endpoint: pass the request on unchanged
	}
	body, report, err := preamble.AppendStable(nil, api, body, &preamble.Options{Relocate: true}) // nil: only the billing header
	if err != nil {
		return body, err // reply with api.WriteError, or pass the request on unchanged
	}
	for _, c := range report.Changes { // Text was removed or moved, Bytes is its length
		log.Printf("%s %s in %s: %d bytes: %q", c.Action, c.Rule, c.Path, c.Bytes, c.Text)
	}
	return body, nil
}

func ExampleCompare() {
	first, err := responses.Decode([]byte(`{"instructions":"You are an agent.\nCurrent date: 2026-11-21","input":"hi"}`), nil)
	if err != nil {
		panic(err)
	}
	second, err := responses.Decode([]byte(`{"instructions":"You are an agent.\nCurrent date: 2026-11-22","input":"hi"}`), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(preamble.Compare(first, second, &preamble.CompareOptions{Excerpt: -1}))
	// Output:
	// prompts diverge at byte 41 (instructions+41): date, session; 3 bytes lost, rule current-date
}

func ExampleHistory() {
	var history preamble.History // one per session
	for _, body := range []string{
		`{"system":"You are an agent.","messages":[{"role":"user","content":"hi"}]}`,
		`{"system":"You are an agent.","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes?"}]}`,
		`{"system":"You are a poet.","messages":[{"role":"user","content":"hi"}]}`,
	} {
		r, err := messages.Decode([]byte(body), nil)
		if err != nil {
			panic(err)
		}
		b := history.Next(r, nil)
		fmt.Printf("%v %d %q\n", b.Relation, b.Offset, b.Cause)
	}
	// Output:
	// extends 0 ""
	// extends 19 ""
	// diverges 0 "system text edited"
}

func ExampleParseRules() {
	own, err := preamble.ParseRules([]byte(`[{"id": "acme/tenant", "in": ["system"], "line": "Tenant: ", "from": "Tenant: ",
		"cause": "tenant", "class": "session", "action": "point", "label": "Tenant: "}]`))
	if err != nil {
		panic(err)
	}
	r, err := messages.Decode([]byte(`{"system":"You work for a tenant.\nTenant: gold\nBe brief.","messages":[]}`), nil)
	if err != nil {
		panic(err)
	}
	o := &preamble.Options{Relocate: true, Rules: append(own, preamble.DefaultRules()...)}
	if _, err := preamble.Stabilize(r, o); err != nil {
		panic(err)
	}
	body, _ := r.AppendBody(nil)
	fmt.Println(string(body))
	// Output:
	// {"system":"You work for a tenant.\nTenant: (see the end)\nBe brief.\n\n# About this session\nTenant: gold","messages":[]}
}

// A proxy can log the changes that it made to a request. Each Change has the text that Stabilize found in the request.
func ExampleReport() {
	r, err := messages.Decode([]byte(`{"system":[`+
		`{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=97bd6;"},`+
		`{"type":"text","text":"You are an agent.\nToday's date is 2026-11-22.\nBe brief.","cache_control":{"type":"ephemeral"}}],"messages":[]}`), nil)
	if err != nil {
		panic(err)
	}
	report, err := preamble.Stabilize(r, &preamble.Options{Canonical: true, Relocate: true})
	if err != nil {
		panic(err)
	}
	for _, c := range report.Changes {
		fmt.Printf("%s %s in %s, %d times, %d bytes: %q\n", c.Action, c.Rule, c.Path, c.Count, c.Bytes, c.Text)
	}
	s := report.Stable
	fmt.Println(report.Bytes(), "bytes removed; stable up to", s.Offset, s.Path, s.Class, s.Cause) // 62 is that of the removed text
	// Output:
	// removed claude-code/billing in system[0], 1 times, 62 bytes: "x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=97bd6;"
	// move claude-code/date in system[1], 1 times, 27 bytes: "Today's date is 2026-11-22."
	// respelt canonical/cache in system[0], 1 times, 36 bytes: ""
	// respelt canonical/content-form in system, 1 times, 62 bytes: ""
	// 62 bytes removed; stable up to 29 system session relocated text
}
