// SPDX-License-Identifier: Apache-2.0

// Package cli implements the common parts of the example programs: flags, help, exit statuses and JSON lines.
//
// A program exits with status 0 on success, 1 if it failed or any record was bad, and 2 if its command line was
// invalid. The flags -h and -version print to stdout and exit with status 0.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// ErrDone is returned after the output of -h and -version. Its exit status is 0.
var ErrDone = errors.New("done")

// A UsageError reports an invalid command line. Its exit status is 2.
type UsageError struct{ Problem string }

func (e *UsageError) Error() string { return e.Problem }

// Usagef returns a UsageError with a formatted problem.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Exit prints err to stderr after the name of the program and ends the process with the status for err.
func Exit(name string, err error) { os.Exit(Status(os.Stderr, name, err)) }

// Status prints err to stderr, on one line, and returns the exit status for it.
func Status(stderr io.Writer, name string, err error) int {
	if err == nil || errors.Is(err, ErrDone) {
		return 0
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		fmt.Fprintf(stderr, "%s: %v (%[1]s -h prints the usage)\n", name, err)
		return 2
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return 1
}

// Flags is the set of flags of a program, with -h and -version.
type Flags struct {
	*flag.FlagSet
	usage   string
	stdout  io.Writer
	version *bool
}

// NewFlags returns the flags of the program called name. -h prints the usage before the flags; it describes the command
// line, stdin and the output, and has an example.
func NewFlags(name, usage string, stdout io.Writer) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), usage: usage, stdout: stdout}
	f.SetOutput(io.Discard) // Parse returns errors instead
	f.FlagSet.Usage = func() {}
	f.version = f.Bool("version", false, "print the version and exit")
	return f
}

// Parse parses the flags in args. The error is ErrDone after -h and -version, or a *UsageError.
func (f *Flags) Parse(args []string) error {
	switch err := f.FlagSet.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(f.stdout, "%s\n\nFlags:\n", strings.TrimSpace(f.usage))
		f.SetOutput(f.stdout)
		f.PrintDefaults()
		return ErrDone
	case err != nil:
		return f.explain(err)
	}
	if *f.version {
		fmt.Fprintf(f.stdout, "%s %s\n", f.Name(), Version())
		return ErrDone
	}
	return nil
}

// explain returns the UsageError for an error of package flag. For an unknown flag it suggests similar ones.
func (f *Flags) explain(err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "flag provided but not defined: -")
	if !unknown {
		return &UsageError{text}
	}
	var names []string
	f.VisitAll(func(g *flag.Flag) { names = append(names, g.Name) })
	near := Near(strings.TrimLeft(name, "-"), names)
	for i := range near {
		near[i] = "-" + near[i]
	}
	return Usagef("unknown flag -%s%s", name, DidYouMean(near))
}

// Version returns the version of the program's module, the commit if known, and the Go version.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, commit, modified := info.Main.Version, "", ""
	if version == "" || version == "(devel)" {
		version = "development"
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " modified"
		}
	}
	return version + commit + modified + " " + info.GoVersion
}

// DidYouMean returns "; did you mean a or b?", or "" if names is empty.
func DidYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// OneOf returns nil if value is in names, and otherwise a *UsageError that suggests or lists names.
func OneOf(what, value string, names ...string) error {
	if slices.Contains(names, value) {
		return nil
	}
	if near := Near(value, names); len(near) > 0 {
		return Usagef("unknown %s %q%s", what, value, DidYouMean(near))
	}
	return Usagef("unknown %s %q: want %s", what, value, strings.Join(names, ", "))
}

// Near returns up to three of names that are similar to name or begin with it, the most similar first. Two names are
// similar if a typing error at one position explains the difference.
func Near(name string, names []string) []string {
	type candidate struct {
		name string
		diff int
	}
	var list []candidate
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
	a := fold(name)
	for _, n := range names {
		b := fold(n)
		d := different(a, b)
		if d <= max(1, min(len(a), len(b))/3) || len(a) > 1 && strings.HasPrefix(b, a) {
			list = append(list, candidate{n, d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.diff - b.diff })
	var near []string
	for _, c := range list[:min(3, len(list))] {
		near = append(near, c.name)
	}
	return near
}

// different returns the number of bytes of the longer name between the prefix and the suffix that a and b share.
func different(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}
