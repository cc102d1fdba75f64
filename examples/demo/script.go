// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weft-go/weft/examples/engine/vllm"
)

// This file plans the output of the model, which is written in the raw format of a model family and parsed by the
// gateway.

// A line is one turn of the model.
type line struct {
	reasoning, text string
	calls           []plannedCall
}

type plannedCall struct {
	name string
	args []string // name, value, name, value, ...
}

// plan lists the model's turns.
var plan = []line{
	{
		reasoning: "The test wants five attempts. I should read it, and find every place that knows the limit.",
		text:      "I will read the test and look for the limit.",
		calls: []plannedCall{
			{"grep", []string{"pattern", "MaxAttempts"}},
			{"read_file", []string{"path", "retry_test.go"}},
		},
	},
	{
		reasoning: "flaky(4) fails four times, so the fifth attempt must be allowed. The limit in retry.go is three.",
		text:      "The limit is too low. I will raise it and note it in the changelog.",
		calls: []plannedCall{
			{"edit_file", []string{"path", "retry.go", "old", "const MaxAttempts = 3", "new", "const MaxAttempts = 5"}},
			{"edit_file", []string{"path", "CHANGELOG.md", "old", "## Unreleased\n", "new", "## Unreleased\n- courier: MaxAttempts is 5, so that four failures in a row are survived\n"}},
		},
	},
	{
		reasoning: "Both edits are in. While the test runs I can look for documents that still speak of three.",
		calls: []plannedCall{
			{"run_tests", []string{"run", "TestRetry"}},
			{"grep", []string{"pattern", "(?i)(three|3) (attempts|times)"}},
		},
	},
	{
		text: "TestRetry passes. The client gave up after three attempts while the test lets four fail; MaxAttempts is 5 now, and the changelog says so.",
	},
}

// A story is one conversation of the demo: an API, a model family, the name of the agent, and the first question.
// Agents of one name share their system text and thus a prefix.
type story struct {
	api, family, agent, question string
}

var stories = []story{
	{"chat", "hermes", "Your name is Loom.", "TestRetry is red on main. Find out why and fix it, please."},
	{"responses", "qwen3_coder", "Your name is Heddle.", "The nightly run fails in TestRetry. Repair it and tell me what was wrong."},
	{"messages", "qwen3_coder", "Your name is Loom.", "Somebody broke TestRetry. Make it pass without touching the test."},
}

// script returns the reply to a prompt: the question selects the family, the number of earlier replies the line.
func script(p vllm.Prompt) vllm.Reply {
	for _, s := range stories {
		if !strings.Contains(p.Text, s.question) {
			continue
		}
		_, talk, _ := strings.Cut(p.Text, s.question)
		turn := strings.Count(talk, "<|im_start|>assistant\n") - 1 // the last one is the start of the model's turn
		if turn >= 0 && turn < len(plan) {
			return vllm.Reply{Text: plan[turn].raw(s.family)}
		}
	}
	return vllm.Reply{Text: "I have nothing to say to that."}
}

// raw returns the line in the raw format of the family.
func (l *line) raw(family string) string {
	var b strings.Builder
	if l.reasoning != "" {
		fmt.Fprintf(&b, "<think>\n%s\n</think>\n\n", l.reasoning)
	}
	b.WriteString(l.text)
	for i, c := range l.calls {
		if i > 0 || l.text != "" {
			b.WriteByte('\n')
		}
		b.WriteString("<tool_call>\n")
		if family == "qwen3_coder" {
			fmt.Fprintf(&b, "<function=%s>\n", c.name)
			for i := 0; i < len(c.args); i += 2 {
				fmt.Fprintf(&b, "<parameter=%s>\n%s\n</parameter>\n", c.args[i], c.args[i+1])
			}
			b.WriteString("</function>")
		} else {
			fmt.Fprintf(&b, `{"name": %s, "arguments": {`, quote(c.name))
			for i := 0; i < len(c.args); i += 2 {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, `%s: %s`, quote(c.args[i]), quote(c.args[i+1]))
			}
			b.WriteString("}}")
		}
		b.WriteString("\n</tool_call>")
	}
	return b.String()
}

func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string always encodes
	return strings.TrimSpace(b.String())
}
