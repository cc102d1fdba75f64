// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Floor is the minimal machine: a program that passes text through as it comes and looks only for the markers of
// hermes, with no names, no arguments, no checks. No parser can be much faster. It measures itself on the hermes lines
// of the workload files; other families are compared with that.
type Floor struct {
	program string
	data    string
}

// Replies is the number of replies with a 10 KB argument in the growth workload, besides the one in the workload files.
// A processor learns the branches of one short reply that is parsed again and again, which makes it look cheaper, per
// chunk, than a long one that it cannot learn; it does not learn that many.
const Replies = 12

// NewFloor builds the minimal machine of directory shared into directory dir, where it also puts the workload files
// that it reads and the growth files of every family.
func NewFloor(ctx context.Context, shared, dir string) (*Floor, error) {
	f := &Floor{program: filepath.Join(dir, "floor"), data: filepath.Join(dir, "data")}
	gen := filepath.Join(dir, "parsegen")
	for _, b := range []struct{ tool, out string }{{"floor", f.program}, {"parsegen", gen}} {
		if err := run(ctx, filepath.Join(shared, "tools", b.tool), "go", "build", "-o", b.out, "."); err != nil {
			return nil, err
		}
	}
	if err := run(ctx, dir, gen, "-out", f.data); err != nil {
		return nil, err
	}
	for seed := 1; seed <= Replies; seed++ {
		more := filepath.Join(dir, "more")
		if err := run(ctx, dir, gen, "-out", more, "-seed", fmt.Sprint(7919*seed)); err != nil {
			return nil, err
		}
		for _, family := range Families() {
			if err := copyLine(f.More(family.Name), filepath.Join(more, "growth-"+family.Name+".jsonl"), "growth-10240"); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range []string{"plain.jsonl", "agentic.jsonl"} { // the files as they are, whatever was generated
		raw, err := os.ReadFile(filepath.Join(shared, "bench", "parsers", name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(f.data, name), raw, 0o644); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s in %s: %w: %s", name, strings.Join(args, " "), dir, err, bytes.TrimSpace(out))
	}
	return nil
}

// copyLine appends the line of the sample called name in file from, which need not exist, to file to.
func copyLine(to, from, name string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes()[:min(200, len(lines.Bytes()))], []byte(`"name":"`+name+`"`)) {
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = out.Write(append(lines.Bytes(), '\n'))
		return errors.Join(err, out.Close())
	}
	return fmt.Errorf("%s has no %s: %w", from, name, lines.Err())
}

// More returns the file with more samples of a 10 KB argument.
func (f *Floor) More(family string) string {
	return filepath.Join(f.data, "more-"+family+".jsonl")
}

// Growth returns the file with the growth samples of a family.
func (f *Floor) Growth(family string) string {
	return filepath.Join(f.data, "growth-"+family+".jsonl")
}

// FloorTime is a time of the minimal machine per chunk, in nanoseconds: the median and the lowest of its rounds.
type FloorTime struct{ NS, Min float64 }

// FloorTimes are the times of the minimal machine.
type FloorTimes struct {
	Plain, Agentic FloorTime
	Growth         FloorTime // at a 1 MB argument
}

// Run measures the minimal machine. It takes some seconds. raw is its output.
func (f *Floor) Run(ctx context.Context) (times FloorTimes, raw []byte, err error) {
	c := exec.CommandContext(ctx, f.program, f.data)
	c.Stderr = os.Stderr
	if raw, err = c.Output(); err != nil {
		return times, raw, fmt.Errorf("the minimal machine: %w", err)
	}
	times, err = parseFloor(raw)
	return times, raw, err
}

func parseFloor(raw []byte) (FloorTimes, error) {
	var t FloorTimes
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		row, ok := strings.CutPrefix(lines.Text(), "minimal machine Feed(chunk)->events, ")
		if !ok {
			continue
		}
		what, _, _ := strings.Cut(row, "  ")
		var ft FloorTime
		if _, err := fmt.Sscanf(row[len(what):], "%f ns/op min %f", &ft.NS, &ft.Min); err != nil {
			return t, fmt.Errorf("the minimal machine printed %q", lines.Text())
		}
		switch {
		case strings.HasPrefix(what, "plain"):
			t.Plain = ft
		case strings.HasPrefix(what, "agentic"):
			t.Agentic = ft
		case strings.HasPrefix(what, "growth 1 MB"):
			t.Growth = ft
		}
	}
	if t.Plain.NS <= 0 || t.Agentic.NS <= 0 || t.Growth.NS <= 0 {
		return t, fmt.Errorf("the minimal machine printed no time for plain, agentic or growth")
	}
	return t, nil
}
