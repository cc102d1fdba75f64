// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-go/weft/examples/engine/vllm"
)

// This file plays a model for agents: asked to create a file, it writes the file with the agent's shell, reads it back, and
// reports it. Asked to note something, it searches for a tool, calls what was found, and patches a file. It reads prompts in
// ChatML and writes the output of hermes.

// task and noteTask are what the agents are asked.
var (
	task     = regexp.MustCompile(`[Cc]reate a file (\S+) with content (\S+)`)
	noteTask = regexp.MustCompile(`Take a note about (\S+): (\S+)`)
)

// foundTool matches the announcement of a tool.
var foundTool = regexp.MustCompile(`Tool (\S*note_\S+) is available now`)

// toolResult matches the result of a call in a prompt.
var toolResult = regexp.MustCompile(`(?s)<tool_response>\n?(.*?)\n?</tool_response>`)

// shells are the names of tools that run commands, in the agents' spellings, and commandFields the names of their fields.
var (
	shells        = []string{"Bash", "bash", "exec_command", "shell_command", "shell", "exec", "run_shell_command"}
	commandFields = []string{"command", "cmd", "script", "input"}
)

// A toolSchema is a tool in a prompt.
type toolSchema struct {
	Name       string
	Parameters struct {
		Properties map[string]struct{ Type any }
		Required   []string
	}
}

// play is the script of the model.
func play(p vllm.Prompt) vllm.Reply {
	var tools []toolSchema
	if _, list, ok := strings.Cut(p.Text, "<tools>\n"); ok {
		list, _, _ = strings.Cut(list, "\n</tools>")
		for line := range strings.Lines(list) {
			var t struct {
				toolSchema
				Function *toolSchema
			}
			if json.Unmarshal([]byte(line), &t) != nil {
				continue
			}
			if t.Function != nil {
				t.toolSchema = *t.Function
			}
			tools = append(tools, t.toolSchema)
		}
	}
	var results []string // after the task
	var file, content, topic, note string
	for turn := range strings.SplitSeq(p.Text, "<|im_start|>") {
		role, text, _ := strings.Cut(turn, "\n")
		if role != "user" && role != "tool" {
			continue
		}
		for _, m := range toolResult.FindAllStringSubmatch(text, -1) {
			results = append(results, m[1])
		}
		if m := task.FindStringSubmatch(toolResult.ReplaceAllString(text, "")); m != nil {
			file, content, results = m[1], strings.TrimRight(m[2], `.,"'`), nil
			content, _, _ = strings.Cut(content, "<|im_end|>")
		}
		if m := noteTask.FindStringSubmatch(text); m != nil {
			topic, results = m[1], nil
			note, _, _ = strings.Cut(m[2], "<|im_end|>")
		}
	}
	if topic != "" {
		return takeNote(p.Text, topic, note, results)
	}
	i := slices.IndexFunc(tools, func(t toolSchema) bool { return slices.Contains(shells, t.Name) })
	switch {
	case i < 0 || file == "":
		return vllm.Reply{Text: "Create a small file"} // a title, for example
	case len(results) == 0:
		return vllm.Reply{Text: "<think>\nThe user wants a file.\n</think>\n\nI will create the file.\n" + tools[i].call("printf '%s\\n' '"+content+"' > "+file)}
	case len(results) == 1:
		return vllm.Reply{Text: "<think>\nNow I read it back.\n</think>\n\n" + tools[i].call("cat "+file)}
	case strings.Contains(results[len(results)-1], content):
		return vllm.Reply{Text: "<think>\nThe file is there.\n</think>\n\ndone: " + file + " has " + content}
	}
	return vllm.Reply{Text: "failed: " + results[len(results)-1]}
}

// takeNote plays the model that was asked to note something: it calls the tool that is found, and notes it in a patch, too.
func takeNote(prompt, topic, note string, results []string) vllm.Reply {
	tool, args := "tool_search", map[string]string{"query": "note " + topic}
	switch len(results) {
	case 0:
	case 1:
		tool, args = "none", map[string]string{"text": note}
		for _, m := range foundTool.FindAllStringSubmatch(prompt, -1) {
			if strings.HasSuffix(m[1], topic) {
				tool = m[1]
			}
		}
	case 2:
		tool, args = "apply_patch", map[string]string{"input": "*** Begin Patch\n*** Add File: patched.txt\n+" + note + "\n*** End Patch\n"}
	default:
		return vllm.Reply{Text: "done: " + strings.Join(results[1:], " ")}
	}
	raw, err := json.Marshal(map[string]any{"name": tool, "arguments": args})
	if err != nil {
		panic(err) // strings
	}
	return vllm.Reply{Text: "<tool_call>\n" + string(raw) + "\n</tool_call>"}
}

// call returns a call of the tool that runs a command.
func (t *toolSchema) call(command string) string {
	args := map[string]any{}
	for _, name := range t.Parameters.Required {
		switch t.Parameters.Properties[name].Type {
		case "number", "integer":
			args[name] = 1
		case "boolean":
			args[name] = false
		default:
			args[name] = "x"
		}
	}
	field := commandFields[0]
	for _, name := range commandFields {
		if _, ok := t.Parameters.Properties[name]; ok {
			field = name
			break
		}
	}
	if args[field] = command; t.Parameters.Properties[field].Type == "array" {
		args[field] = []string{"bash", "-lc", command}
	}
	raw, err := json.Marshal(map[string]any{"name": t.Name, "arguments": args})
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	return "<tool_call>\n" + string(raw) + "\n</tool_call>"
}
