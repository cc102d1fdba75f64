// SPDX-License-Identifier: Apache-2.0

// Command turn measures the CPU time and the memory that the gateway needs for one turn of an agent, stage by stage,
// and of minimal scans of the same body.
//
//	go run ./cmd/turn [-sizes 12K,50K,100K,200K] [-templates qwen3,gpt-oss,deepseek] [-states warm,cold] [-n N] [-json]
//
// It prints a table for each template and size, or with -json a line per row. Needs the shared test data (WEFT_SHARED)
// for the vocabularies. README.md of the module describes the measurements.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/protocols/replay"
)

// A row is one measurement: the means per turn.
type row struct {
	Template string  `json:"template"`
	Size     int     `json:"size"`            // prompt tokens, in thousands
	State    string  `json:"state,omitempty"` // warm, first or cold; "" for floors
	Stage    string  `json:"stage"`
	US       float64 `json:"us"`
	KB       float64 `json:"kb"` // not measured for floors, like Allocs
	Allocs   float64 `json:"allocs"`
}

// options are the flags.
type options struct {
	sizes, templates, states string
	turns                    int
	json                     bool
	root                     string
	profile                  string
}

func main() {
	var o options
	flag.StringVar(&o.sizes, "sizes", "12K,50K,100K,200K", "sizes of the prompt in tokens; 100, 100K and 100000 are the same")
	flag.StringVar(&o.templates, "templates", "qwen3,gpt-oss,deepseek", "templates")
	flag.StringVar(&o.states, "states", "warm,cold", "warm: the previous turn is known; first: nothing of the conversation is; cold: in a new gateway, which knows no words either")
	flag.IntVar(&o.turns, "n", 64, "least number of turns per row")
	flag.BoolVar(&o.json, "json", false, "print a line of JSON per row instead of tables")
	flag.StringVar(&o.root, "root", "../..", "the root of the repository, to find test data beside it; WEFT_SHARED goes first")
	flag.StringVar(&o.profile, "profile", "", "a directory for profiles of turns in the gateway, instead of a table; one size, template and state, by default warm")
	flag.Parse()
	if o.turns < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := measure(&o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "turn:", err)
		os.Exit(1)
	}
}

// measure measures what the options select.
func measure(o *options, w io.Writer) error {
	runtime.GOMAXPROCS(1)
	if o.profile == "" {
		runtime.MemProfileRate = 0 // as in the gateway, which does not link the heap profile
	}
	shared := bench.Shared(o.root)
	if shared == "" {
		return errors.New("no shared test data: set WEFT_SHARED")
	}
	var sizes []int
	for s := range strings.SplitSeq(o.sizes, ",") {
		n, err := parseSize(s)
		if err != nil {
			return err
		}
		sizes = append(sizes, n)
	}
	texts, err := loadCorpus()
	if err != nil {
		return err
	}
	if !o.json {
		fmt.Fprintf(w, "%s %s/%s, means of at least %d turns, CPU time of the process, one thread\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, o.turns)
	}
	for name := range strings.SplitSeq(o.templates, ",") {
		s, err := lookup(name)
		if err != nil {
			return fmt.Errorf("-templates: %w", err)
		}
		for _, size := range sizes {
			rows, err := s.rows(o, shared, texts, size)
			if err != nil {
				return fmt.Errorf("%s, %dK: %w", name, size, err)
			}
			if rows == nil { // profiles
				continue
			}
			if o.json {
				err = writeJSON(w, rows)
			} else {
				err = writeTable(w, rows)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// parseSize parses a number of tokens: 100K, 100 for short, or 100000. It returns thousands.
func parseSize(s string) (int, error) {
	number, inThousands := strings.CutSuffix(strings.ToUpper(s), "K")
	n, err := strconv.Atoi(number)
	if !inThousands && n >= 1000 && n%1000 == 0 {
		n /= 1000
	} else if !inThousands && n >= 1000 {
		err = strconv.ErrRange
	}
	if err != nil || n < 1 {
		return 0, fmt.Errorf("-sizes: invalid size %q: want thousands of tokens, as 100, 100K or 100000", s)
	}
	return n, nil
}

// rows measures one template and size.
func (s *subject) rows(o *options, shared string, texts *corpus, size int) ([]row, error) {
	states := strings.Split(o.states, ",")
	for _, state := range states {
		if state != warm && state != first && state != cold {
			return nil, fmt.Errorf("-states: unknown state %q", state)
		}
	}
	model, err := s.load(shared)
	if err != nil {
		return nil, err
	}
	tok := model.Tokenizer()
	response := streamOf(tok.AppendEncodeSegments(nil, s.output), func(id uint32) string { t, _ := tok.Token(id); return t })
	stubEngines(func() []byte { return response })
	key := make([]byte, replay.KeySize)
	signer, err := replay.NewSigner(key, nil)
	if err != nil {
		return nil, err
	}
	r := &run{model: model, signer: signer, sign: signer.With("\x00"), texts: texts, turns: o.turns}
	if err := r.calibrate(size * 1000); err != nil {
		return nil, err
	}
	if o.profile != "" {
		return nil, r.profile(o.profile, states[0])
	}
	v := newConversation(texts, r.sign, r.next(), r.requests)
	k := r.requests - 1 - window/2
	r.floors = newFloors(v.body(k-1), v.body(k), tok)
	var out []row
	for _, state := range states {
		costs, err := r.costs(state)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", state, err)
		}
		for i, name := range append(slices.Clone(stageNames), "rest", "total", "gc") {
			c := costs[i]
			out = append(out, row{s.name, size, state, name, c.ns / 1e3, c.bytes / 1024, c.allocs})
		}
	}
	for i := range r.floors.list {
		x := &r.floors.list[i]
		if x.runs == 0 { // fewer turns than floors
			x.measure()
		}
		out = append(out, row{Template: s.name, Size: size, Stage: x.name, US: x.ns / float64(x.runs) / 1e3})
	}
	return out, nil
}

// writeJSON writes a line per row.
func writeJSON(w io.Writer, rows []row) error {
	for _, r := range rows {
		r.US, r.KB, r.Allocs = rounded(r.US), rounded(r.KB), rounded(r.Allocs)
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// rounded returns x with one decimal.
func rounded(x float64) float64 { return float64(int64(x*10+0.5)) / 10 }

// writeTable writes a table of the rows of one template and size.
func writeTable(w io.Writer, rows []row) error {
	scan := rows[slices.IndexFunc(rows, func(r row) bool { return r.Stage == "floor_scan" })].US
	var b strings.Builder
	was := row{}
	for _, r := range rows {
		if r.State != was.State || was.Stage == "" {
			title := fmt.Sprintf("%s, %dK, %s", r.Template, r.Size, cmp.Or(r.State, "floors"))
			fmt.Fprintf(&b, "\n%-28s %10s %9s %10s %10s\n", title, "us", "x scan", "KB", "allocs")
		}
		was = r
		fmt.Fprintf(&b, "%-28s %10.1f %9.2f", r.Stage, r.US, r.US/scan)
		if r.State != "" {
			fmt.Fprintf(&b, " %10.1f %10.1f", r.KB, r.Allocs)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
