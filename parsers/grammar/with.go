// SPDX-License-Identifier: Apache-2.0

package grammar

import "fmt"

// With returns the grammar of models that write calls as tool does and reasoning as reasoning does, such as Nemotron's
// qwen3_coder+nemotron_deci. Its name is the two names with a plus sign between them. Both must have tags inside plain
// text, unless they are the same grammar, because frames determine both. The rule for past reasoning is that of
// reasoning. The result shares memory with its parts.
func With(tool, reasoning *Grammar) (*Grammar, error) {
	if tool == reasoning || tool.Name == reasoning.Name {
		return tool, nil
	}
	if tool.Tagged == nil || reasoning.Tagged == nil {
		return nil, fmt.Errorf("grammar: the calls of %s cannot be combined with the reasoning of %s", tool.Name, reasoning.Name)
	}
	both, tagged := *tool, *tool.Tagged
	tagged.Reasoning, both.Replay = reasoning.Tagged.Reasoning, reasoning.Replay
	both.Name, both.Aliases, both.Tagged = tool.Name+"+"+reasoning.Name, nil, &tagged
	both.MaxHold = max(tool.MaxHold, reasoning.MaxHold)
	if err := both.Validate(); err != nil {
		return nil, err
	}
	return &both, nil
}
