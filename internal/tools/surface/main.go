// SPDX-License-Identifier: Apache-2.0

// Command surface prints how many symbols and fields each package exports, and which of them have no caller.
//
//	GOWORK=off go -C internal/tools run ./surface            the table, a line per package
//	GOWORK=off go -C internal/tools run ./surface -unused    the symbols without a caller in another package or an Example
//	GOWORK=off go -C internal/tools run ./surface -check     exit with status 1 if the figures differ from surface.txt
//	GOWORK=off go -C internal/tools run ./surface -update    rewrite surface.txt
//	GOWORK=off go -C internal/tools run ./surface -internal  exit with status 1 if an exported symbol mentions an internal type
//
// A symbol is an exported constant, variable, type, function, method of an exported type, or method of an exported
// interface. A field is an exported field of an exported struct type. Commands, internal packages and tests do not count.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modules are the directories whose packages users import.
var modules = []string{"protocols", "parsers", "tokenizers", "kvhash", "router"}

// recorded is the file with the recorded figures, relative to the root.
const recorded = "internal/tools/surface/surface.txt"

// A count holds the figures of one package.
type count struct {
	pkg             string // import path below the module root
	symbols, fields int
}

func main() {
	root := flag.String("root", "../..", "root of the checkout")
	list := flag.Bool("list", false, "list every exported symbol, with its package")
	unused := flag.Bool("unused", false, "list the exported symbols without a caller in another package or an Example")
	check := flag.Bool("check", false, "compare with "+recorded)
	update := flag.Bool("update", false, "rewrite "+recorded)
	internal := flag.Bool("internal", false, "list the exported symbols whose types mention a type of an internal package, and fail if there are any")
	flag.Parse()
	var err error
	switch {
	case *unused:
		err = printUnused(os.Stdout, *root)
	case *internal:
		err = checkInternal(os.Stdout, *root)
	default:
		err = run(os.Stdout, *root, *list, *check, *update)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(1)
	}
}

// run counts symbols and prints the table or the output that a flag selects.
func run(w io.Writer, root string, list, check, update bool) error {
	var counts []count
	for _, m := range modules {
		err := filepath.WalkDir(filepath.Join(root, m), func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if name := d.Name(); name == "internal" || name == "testdata" {
				return filepath.SkipDir
			}
			rel, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			names, fields, err := exported(dir)
			if err != nil || len(names) == 0 && fields == 0 {
				return err
			}
			rel = filepath.ToSlash(rel)
			counts = append(counts, count{rel, len(names), fields})
			if list {
				for _, n := range names {
					fmt.Fprintf(w, "%s.%s\n", rel, n)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if list {
		return nil
	}
	table := format(counts)
	file := filepath.Join(root, filepath.FromSlash(recorded))
	switch {
	case update:
		return os.WriteFile(file, []byte(table), 0o644)
	case check:
		return compare(w, file, counts)
	}
	_, err := io.WriteString(w, table)
	return err
}

// format returns the table: a line per package, then a line per module and the total.
func format(counts []count) string {
	var b strings.Builder
	line := func(name string, symbols, fields int) { fmt.Fprintf(&b, "%-32s %5d %5d\n", name, symbols, fields) }
	fmt.Fprintf(&b, "%-32s %5s %5s\n", "package", "symbols", "fields")
	total := count{pkg: "total"}
	var sums []count
	for _, c := range counts {
		line(c.pkg, c.symbols, c.fields)
		m, _, _ := strings.Cut(c.pkg, "/")
		if len(sums) == 0 || sums[len(sums)-1].pkg != m {
			sums = append(sums, count{pkg: m})
		}
		for _, s := range []*count{&sums[len(sums)-1], &total} {
			s.symbols += c.symbols
			s.fields += c.fields
		}
	}
	b.WriteByte('\n')
	for _, s := range append(sums, total) {
		line("all of "+s.pkg, s.symbols, s.fields)
	}
	return b.String()
}

// compare returns an error if the figures differ from the recorded ones. Smaller figures must be recorded too; otherwise the
// surface could grow again unnoticed.
func compare(w io.Writer, file string, counts []count) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("no recorded figures, run surface -update: %w", err)
	}
	want := string(data)
	got := format(counts)
	if got == want {
		return nil
	}
	before, now := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range now {
		if !slices.Contains(before, line) {
			fmt.Fprintln(w, "now:     ", line)
		}
	}
	for _, line := range before {
		if !slices.Contains(now, line) {
			fmt.Fprintln(w, "recorded:", line)
		}
	}
	return fmt.Errorf("the surface changed: give the reason in the commit, and run surface -update with it")
}

// exported returns the exported symbols of the package in dir, sorted, and the number of its exported fields. Build
// constraints are not evaluated; a symbol that is declared several times counts once.
func exported(dir string) (names []string, fields int, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	fset := token.NewFileSet()
	for _, f := range files {
		name := f.Name()
		if f.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, 0, err
		}
		if file.Name.Name == "main" { // a command, or a generator in the directory of a package
			continue
		}
		for _, d := range file.Decls {
			fields += declared(d, seen)
		}
	}
	for n := range seen {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, fields, nil
}

// declared adds the exported symbols of d to seen and returns the number of exported fields in it.
func declared(d ast.Decl, seen map[string]bool) (fields int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return 0
		}
		name := d.Name.Name
		if d.Recv != nil {
			recv := receiver(d.Recv.List[0].Type)
			if !ast.IsExported(recv) {
				return 0
			}
			name = recv + "." + name
		}
		seen[name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						seen[n.Name] = true
					}
				}
			case *ast.TypeSpec:
				if !s.Name.IsExported() {
					continue
				}
				seen[s.Name.Name] = true
				fields += members(s, seen)
			}
		}
	}
	return fields
}

// members adds the methods of an interface to seen and returns the number of exported fields of a struct, including
// nested anonymous structs.
func members(s *ast.TypeSpec, seen map[string]bool) (fields int) {
	switch t := s.Type.(type) {
	case *ast.InterfaceType:
		for _, m := range t.Methods.List {
			for _, n := range m.Names {
				if n.IsExported() {
					seen[s.Name.Name+"."+n.Name] = true
				}
			}
		}
	case *ast.StructType:
		ast.Inspect(t, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range st.Fields.List {
				if len(f.Names) == 0 && ast.IsExported(receiver(f.Type)) {
					fields++
				}
				for _, n := range f.Names {
					if n.IsExported() {
						fields++
					}
				}
			}
			return true
		})
	}
	return fields
}

// receiver returns the name of the type that a receiver or an embedded field has.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}
