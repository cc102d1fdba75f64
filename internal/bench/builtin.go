// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// The built-in workload: made of the words and lines below, for four families, with the sizes of the workload files. It
// serves where those files are absent and for families that they do not have.

const builtinTools = `[
{"type":"function","function":{"name":"search","description":"search","parameters":{"type":"object",
 "properties":{"query":{"type":"string"},"globs":{"type":"array","items":{"type":"string"}},"ratio":{"type":"number"}},
 "required":["query"]}}},
{"type":"function","function":{"name":"read_file","description":"read_file","parameters":{"type":"object",
 "properties":{"path":{"type":"string"},"offset":{"type":"integer"}},"required":["path"]}}},
{"type":"function","function":{"name":"write_file","description":"write_file","parameters":{"type":"object",
 "properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}}]`

type param struct {
	key   string
	value any
}

type builtinCall struct {
	name   string
	params []param
}

// object returns the arguments of c as a JSON object, in order.
func (c builtinCall) object() string {
	var parts []string
	for _, p := range c.params {
		parts = append(parts, quote(p.key)+": "+quote(p.value))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quote returns v as JSON, '<' and '>' left as they are.
func quote(v any) string {
	var s strings.Builder
	e := json.NewEncoder(&s)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("bench: " + err.Error())
	}
	return strings.TrimSpace(s.String())
}

// raw returns v as the families write it that do not quote strings.
func raw(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return quote(v)
}

// builtinFamily writes responses in the format of one family.
type builtinFamily struct {
	prefill bool
	special []string
	render  func(reasoning, content string, calls []builtinCall) string
}

func builtinFamilies() map[string]builtinFamily {
	return map[string]builtinFamily{
		"hermes": {
			special: []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
			render: func(reasoning, content string, calls []builtinCall) string {
				s := "<think>\n" + reasoning + "\n</think>\n\n" + content
				for _, c := range calls {
					s += "\n<tool_call>\n{\"name\": " + quote(c.name) + ", \"arguments\": " + c.object() + "}\n</tool_call>"
				}
				return s
			},
		},
		"qwen3_coder": {
			prefill: true,
			special: []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
			render: func(reasoning, content string, calls []builtinCall) string {
				s := reasoning + "\n</think>\n\n" + content
				for _, c := range calls {
					s += "\n<tool_call>\n<function=" + c.name + ">\n"
					for _, p := range c.params {
						s += "<parameter=" + p.key + ">\n" + raw(p.value) + "\n</parameter>\n"
					}
					s += "</function>\n</tool_call>"
				}
				return s
			},
		},
		"harmony": {
			special: []string{"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|constrain|>", "<|return|>"},
			render: func(reasoning, content string, calls []builtinCall) string {
				s := "<|channel|>analysis<|message|>" + reasoning + "<|end|><|start|>assistant<|channel|>"
				if len(calls) == 0 {
					return s + "final<|message|>" + content + "<|return|>"
				}
				s += "commentary<|message|>" + content + "<|end|>"
				for _, c := range calls {
					s += "<|start|>assistant<|channel|>commentary to=functions." + c.name +
						" <|constrain|>json<|message|>" + c.object() + "<|call|>"
				}
				return s
			},
		},
		"kimi_k3": {
			special: []string{"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"},
			render: func(reasoning, content string, calls []builtinCall) string {
				s := element("think", "", reasoning) + element("response", "", content)
				var tools string
				for i, c := range calls {
					var params string
					for _, p := range c.params {
						params += element("argument", fmt.Sprintf(" key=%q type=%q", p.key, typeOf(p.value)), raw(p.value))
					}
					tools += element("call", fmt.Sprintf(" tool=%q index=\"%d\"", c.name, i+1), params)
				}
				if tools != "" {
					s += element("tools", "", tools)
				}
				return s + "<|close|>message<|sep|><|end_of_msg|>"
			},
		},
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case []string:
		return "array"
	}
	return "number"
}

func element(name, attrs, body string) string {
	return "<|open|>" + name + attrs + "<|sep|>" + body + "<|close|>" + name + "<|sep|>"
}

// Builtin returns the built-in workload called work (plain, agentic, short, growth or more) of a family, or nil if
// absent. Growth has one argument of 1 KB, 10 KB, 100 KB and 1 MB, more has Replies with 10 KB. It is the same in every
// run.
func Builtin(family, work string) []Sample {
	f, ok := builtinFamilies()[family]
	if !ok {
		return nil
	}
	r := rand.New(rand.NewPCG(7, uint64(len(family))))
	small := builtinCall{"search", []param{{"query", prose(r, 30)}, {"globs", []string{"**/*.go", "*.md"}}, {"ratio", 0.25}}}
	read := builtinCall{"read_file", []param{{"path", "/src/main.go"}, {"offset", 120}}}
	write := func(n int) builtinCall {
		return builtinCall{"write_file", []param{{"path", "/src/out.go"}, {"content", code(r, n)}}}
	}
	sample := func(name string, reasoning, content int, calls ...builtinCall) Sample {
		if family == "harmony" && len(calls) > 1 { // one call to a message
			calls = calls[len(calls)-1:]
		}
		s := Sample{Family: family, Name: name, Prefill: f.prefill}
		s.Expect.Reasoning = prose(r, reasoning)
		s.Expect.Content = prose(r, content/2) + "\n\n" + code(r, content/2)
		s.Text = f.render(s.Expect.Reasoning, s.Expect.Content, calls)
		for _, c := range calls {
			s.Expect.Calls = append(s.Expect.Calls, Call{c.name, json.RawMessage(c.object())})
		}
		s.Runes = cut(r, s.Text, nil)
		s.Atomic = cut(r, s.Text, f.special)
		for n := len(s.Text); n > 0; {
			k := min(1+r.IntN(6), n)
			s.Bytes = append(s.Bytes, k)
			n -= k
		}
		return s
	}
	switch work {
	case "plain":
		return []Sample{sample("plain", 8000, 12000)}
	case "agentic":
		return []Sample{sample("agentic", 8000, 2400, small, read, write(20000))}
	case "short":
		return []Sample{
			sample("short0", 200, 100, small), sample("short1", 150, 80, read, write(400)), sample("short2", 120, 60, read, small),
		}
	case "growth":
		var out []Sample
		for _, n := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20} {
			out = append(out, sample(fmt.Sprintf("growth-%d", n), 200, 100, write(n)))
		}
		return out
	case "more":
		var out []Sample
		for i := range Replies {
			out = append(out, sample(fmt.Sprintf("more-%d", i), 200, 100, write(10<<10)))
		}
		return out
	}
	return nil
}

var builtinWords = strings.Fields(`a build of this module reads its options first and then every request waits
until some worker has room so that nobody is served twice later on we might split what is slow into two parts né größer 東京 but today it
stays as it is because one simple loop does well enough here if x < y holds`)

// prose returns at least n bytes of words.
func prose(r *rand.Rand, n int) string {
	var s strings.Builder
	for s.Len() < n {
		s.WriteString(builtinWords[r.IntN(len(builtinWords))])
		if r.IntN(12) == 0 {
			s.WriteString(".\n")
		} else {
			s.WriteByte(' ')
		}
	}
	return strings.TrimSpace(s.String())
}

var builtinLines = []string{
	"func sum(xs []int) (n int) {", "\tfor _, x := range xs {", "\t\tif x < limit && x > 0 {", "\t\t\tn += x", "\t}", "}",
	"",
	`	fmt.Printf("%d of \"%s\"\n", n, name)`, `<p class="a">1 &lt; 2 <br/></p>`,
	"// größer, 東京 🙂", `{"k": [1, 2, {"z": null}]}`,
}

// code returns at least n-1 bytes of lines that look like a source file, with no marker of a family in them.
func code(r *rand.Rand, n int) string {
	var s strings.Builder
	for s.Len() < n {
		s.WriteString(builtinLines[r.IntN(len(builtinLines))])
		s.WriteByte('\n')
	}
	return strings.TrimSpace(s.String())
}

// cut returns the lengths of chunks of 1 to 6 characters; what special lists is one chunk.
func cut(r *rand.Rand, s string, special []string) []int {
	marker := func(at int) int {
		for _, m := range special {
			if strings.HasPrefix(s[at:], m) {
				return len(m)
			}
		}
		return 0
	}
	var out []int
	for at := 0; at < len(s); {
		n := marker(at)
		if n == 0 {
			for k := 1 + r.IntN(6); k > 0 && at+n < len(s) && (n == 0 || marker(at+n) == 0); k-- {
				_, w := utf8.DecodeRuneInString(s[at+n:])
				n += w
			}
		}
		out = append(out, n)
		at += n
	}
	return out
}
