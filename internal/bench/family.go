// SPDX-License-Identifier: Apache-2.0

package bench

import "slices"

// Family describes one family of models to the harness.
type Family struct {
	// Name is the family as the workload files spell it.
	Name string
	// Tagged is false when the arguments are JSON on the wire, so that they can pass as they are, and true when they
	// have to be made into JSON: tagged parameters, Python literals.
	Tagged bool
	// Ollama is the name of Ollama's parser of this family, "" when it has none.
	Ollama string
	// Prime is fed to Ollama's parser first: the opener of reasoning, for a parser that does not know that the prompt
	// ended with it.
	Prime string
	// Stop lists end-of-turn tokens, which Ollama's engine does not pass on to its parser. They are cut off the end.
	Stop []string
	// NoReasoning reports that the workload files declare "the prompt opened reasoning" for this family, although their
	// texts contain no reasoning.
	NoReasoning bool
}

// Families lists the families in the order of the workload files, then those that only the built-in workload has.
func Families() []Family {
	return []Family{
		{Name: "hermes", Ollama: "qwen3-thinking"},
		{Name: "qwen3_coder", Tagged: true, Ollama: "qwen3.5"},
		{Name: "glm47", Tagged: true, Ollama: "glm-4.7"},
		{Name: "deepseek_v31", Ollama: "deepseek3"},
		{Name: "deepseek_dsml", Tagged: true},
		{Name: "deepseek_dsml32", Tagged: true},
		{Name: "kimi_k2"},
		{Name: "minimax_m2", Tagged: true},
		{Name: "harmony", Ollama: "harmony", Stop: []string{"<|call|>", "<|return|>"}},
		{Name: "gemma4", Tagged: true, Ollama: "gemma4"},
		{Name: "llama3_json"},
		{Name: "mistral"},
		{Name: "ministral", Ollama: "ministral", Prime: "[THINK]"},
		{Name: "pythonic", Tagged: true},
		{Name: "olmo3", Tagged: true, Ollama: "olmo3", NoReasoning: true},
		{Name: "kimi_k3", Tagged: true},
	}
}

// FamilyNamed returns the family called name, and whether it exists.
func FamilyNamed(name string) (Family, bool) {
	all := Families()
	i := slices.IndexFunc(all, func(f Family) bool { return f.Name == name })
	if i < 0 {
		return Family{}, false
	}
	return all[i], true
}

// Bars are the highest allowed ratios of weft's CPU time per chunk to the minimal machine's: on plain text, on the
// reply with a 20 KB argument, and of the time at a 1 MB argument to that at 10 KB.
type Bars struct{ Plain, Agentic, Growth float64 }

// Bars returns the goals for f.
func (f Family) Bars() Bars {
	if f.Tagged {
		return Bars{Plain: 2.5, Agentic: 4, Growth: 1.3}
	}
	return Bars{Plain: 2.5, Agentic: 3, Growth: 1.3}
}
