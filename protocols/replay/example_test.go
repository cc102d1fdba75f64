// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/weft-go/weft/protocols/replay"
)

// field returns a function that does what the method Field of *block.Request does.
func field(body string) func(path ...string) []byte {
	return func(path ...string) []byte {
		raw := json.RawMessage(body)
		for _, p := range path {
			var m map[string]json.RawMessage
			if json.Unmarshal(raw, &m) != nil {
				return nil
			}
			raw = m[p]
		}
		return raw
	}
}

func Example() {
	// Observations of GLM-4.7's chat template: it prints the reasoning since the last question, or all of it with
	// clear_thinking=false.
	glm, err := replay.Infer(replay.Observations{
		Key:     true,
		Printed: "uau uCt uctau uctu uCtCt; clear_thinking=false: uAu uCt uCtAu uCtu uCtCt; clear_thinking=true: uau uCt uctau uctu uCtCt",
	})
	if err != nil {
		panic(err)
	}
	// For a *block.Request, the method ReplayTurns returns them.
	turns := []replay.Turn{
		{Start: true}, {Assistant: true, Reasoning: true, Calls: true}, {}, {Assistant: true, Reasoning: true},
		{Start: true}, {Assistant: true, Reasoning: true, Calls: true}, {},
	}
	for _, body := range []string{`{}`, `{"reasoning":{"context":"all_turns"}}`} {
		pref := replay.ParsePreference(field(body), func(path, problem string) { fmt.Println(path, problem) })
		plan := replay.NewPlan(replay.Model{Template: glm}, pref)
		fmt.Println(plan.AppendOutcomes(nil, turns, true), plan.Vars)
	}
	// Output:
	// [none dropped none dropped none kept none] map[]
	// [none kept none kept none kept none] map[clear_thinking:false]
}

func ExampleRule() {
	rule, err := replay.ParseRule("since_user; tools: all; off: none") // an operator's setting
	if err != nil {
		panic(err)
	}
	turns := []replay.Turn{
		{Start: true}, {Assistant: true, Reasoning: true},
		{Start: true}, {Assistant: true, Reasoning: true, Calls: true}, {},
	}
	fmt.Println(rule.AppendKept(nil, turns, false))
	fmt.Println(rule.AppendKept(nil, turns, true))
	fmt.Println(rule)
	// Output:
	// [false false false true false]
	// [false true false true false]
	// since_user; tools: all; off: none
}

func ExampleSigner() {
	signer, err := replay.NewSigner([]byte("32 bytes from a random source..."), nil)
	if err != nil {
		panic(err)
	}
	ours := signer.With("tenant-7")

	s := ours.NewWriter(false) // the client receives the text in pieces, and then the token
	for _, delta := range []string{"List the ", "folder first."} {
		io.WriteString(s, delta)
	}
	token := string(s.AppendToken(nil))
	fmt.Println(token[:15])

	text, verdict := ours.Open(token, "List the folder first.")
	fmt.Println(verdict, text)
	_, verdict = ours.Open(token, "Delete the folder at once.")
	fmt.Println(verdict)

	box, _ := ours.AppendSealed(nil, []byte("List the folder first.")) // the client does not receive the text
	text, verdict = ours.Open(string(box), "")
	fmt.Println(verdict, text)
	// Output:
	// weft3.sgDGrhA.m
	// intact List the folder first.
	// forged
	// intact List the folder first.
}
