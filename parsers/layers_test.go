// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checked is the result of the first call to sources.
var checked struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// sources returns the package, type-checked. Its imports are empty, so objects of other packages have no type.
func sources(t *testing.T) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	if checked.info != nil {
		return checked.fset, checked.files, checked.info
	}
	fset := token.NewFileSet()
	var files []*ast.File
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: nowhere{}, Error: func(error) {}}
	_, _ = conf.Check("parsers", fset, files, info) // errors about imports do not matter
	checked.fset, checked.files, checked.info = fset, files, info
	return fset, files, info
}

// nowhere imports empty packages.
type nowhere struct{}

func (nowhere) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	return p, nil
}

// order returns the rank of each file, as the comment on Parser lists them.
func order(t *testing.T) map[string]int {
	t.Helper()
	src, err := os.ReadFile("parser.go")
	require.NoError(t, err)
	_, list, ok := strings.Cut(string(src), "from the bottom up;")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "type Parser struct")
	rank := map[string]int{}
	for _, line := range strings.Split(list, "\n") {
		names, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		for _, name := range regexp.MustCompile(`\b\w+\.go\b`).FindAllString(names, -1) {
			rank[name] = len(rank)
		}
	}
	return rank
}

// TestLayers asserts that every file uses only what it or a file before it declares. Types may refer to each other.
func TestLayers(t *testing.T) {
	fset, files, info := sources(t)
	rank := order(t)
	uses := 0
	for _, f := range files {
		name := fset.Position(f.Pos()).Filename
		if name == "doc.go" {
			continue
		}
		from, ok := rank[name]
		require.True(t, ok, "%s is not in the list of files of parser.go", name)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			obj := info.Uses[id]
			if obj == nil || !obj.Pos().IsValid() {
				return true
			}
			switch obj.(type) {
			case *types.Func, *types.Const, *types.Var:
			default:
				return true
			}
			uses++
			if in := fset.Position(obj.Pos()).Filename; rank[in] > from {
				t.Errorf("%v uses %s of %s, which comes later", fset.Position(id.Pos()), id.Name, in)
			}
			return true
		})
	}
	require.Greater(t, uses, 5000, "the types were not found")
}

// TestStructsAreSmall asserts that no struct has more than 30 fields.
func TestStructsAreSmall(t *testing.T) {
	_, files, _ := sources(t)
	seen := []string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			seen = append(seen, spec.Name.Name)
			fields := 0
			for _, f := range s.Fields.List {
				fields += max(1, len(f.Names))
			}
			if fields > 30 {
				t.Errorf("%s has %d fields", spec.Name.Name, fields)
			}
			return true
		})
	}
	for _, name := range []string{"Parser", "machine", "window", "tagged", "channels", "elements"} {
		require.True(t, slices.Contains(seen, name), name)
	}
}
