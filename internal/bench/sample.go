// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Call is one tool call: its name and its arguments, a JSON object.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Sample is one model output, as a line of the workload files has it.
type Sample struct {
	Family string
	Name   string
	// Prefill reports that the prompt opened reasoning: the text starts inside it.
	Prefill bool `json:"prefill_reasoning"`
	Text    string
	// The cuts, as byte lengths that add up to len(Text).
	Runes  []int `json:"chunks"`        // 1 to 6 characters, may split markers
	Atomic []int `json:"chunks_atomic"` // the same, but a special token is one chunk
	Bytes  []int `json:"chunks_bytes"`  // 1 to 6 bytes, may split UTF-8; may be absent
	// Expect is the expected result.
	Expect struct {
		Reasoning string
		Content   string
		Calls     []Call
	}
}

// Cuts returns the lengths of the chunks of the named way to cut s: runes, atomic, bytes or whole. It returns nil for
// another name or a way that s has not got.
func (s *Sample) Cuts(how string) []int {
	switch how {
	case "runes":
		return s.Runes
	case "atomic":
		return s.Atomic
	case "bytes":
		return s.Bytes
	case "whole":
		return []int{len(s.Text)}
	}
	return nil
}

// Input is a sample cut into chunks, ready to be driven through a parser. Text and Raw hold the same bytes.
type Input struct {
	Sample *Sample
	Text   string
	Raw    []byte
	Lens   []int32
}

// Inputs cuts every sample in the named way. A sample without it is left out.
func Inputs(samples []Sample, how string) []Input {
	var out []Input
	for i := range samples {
		s := &samples[i]
		cuts := s.Cuts(how)
		if cuts == nil {
			continue
		}
		in := Input{Sample: s, Text: s.Text, Raw: []byte(s.Text)}
		for _, n := range cuts {
			in.Lens = append(in.Lens, int32(n))
		}
		out = append(out, in)
	}
	return out
}

// Size returns the chunks and the bytes of all inputs together.
func Size(ins []Input) (chunks, bytes int) {
	for i := range ins {
		chunks += len(ins[i].Lens)
		bytes += len(ins[i].Text)
	}
	return chunks, bytes
}

// Load reads the samples of one family from a workload file.
func Load(file, family string) ([]Sample, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Sample
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var head struct{ Family string }
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if head.Family != family {
			continue
		}
		var s Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, how := range []string{"runes", "atomic", "bytes"} {
			sum := 0
			for _, n := range s.Cuts(how) {
				sum += n
			}
			if sum != len(s.Text) && s.Cuts(how) != nil {
				return nil, fmt.Errorf("%s: %s %s: the %s chunks have %d bytes, the text %d",
					file, family, s.Name, how, sum, len(s.Text))
			}
		}
		out = append(out, s)
	}
	return out, lines.Err()
}

// Shared returns the directory of the test data outside the repository: WEFT_SHARED, else "shared" next to the
// repository. root is the path of the repository from the working directory. It returns "" if absent.
func Shared(root string) string {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join(root, "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "bench", "parsers", "tools.json")); err != nil {
		return ""
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	return abs
}
