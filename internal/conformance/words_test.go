// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// allowedWords are names that the rules would refuse, with the reason.
var allowedWords = map[string]string{}

// TestWords checks the exported names of the libraries against the table of words in CONTRIBUTING.md.
func TestWords(t *testing.T) {
	var faults []string
	used := map[string]bool{}
	for _, module := range []string{"protocols", "parsers", "tokenizers", "kvhash", "router"} {
		err := filepath.WalkDir(filepath.Join("..", "..", module), func(dir string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir():
				return err
			case d.Name() == "internal" || d.Name() == "testdata":
				return filepath.SkipDir
			}
			names, err := exportedNames(dir)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(filepath.Join("..", ".."), dir)
			if err != nil {
				return err
			}
			for _, n := range names {
				full := filepath.ToSlash(rel) + "." + n.String()
				why := n.fault(module)
				if why != "" && allowedWords[full] != "" {
					used[full], why = true, ""
				}
				if why != "" {
					faults = append(faults, full+": "+why)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range allowedWords {
		if !used[name] {
			faults = append(faults, name+": no such name needs to be allowed")
		}
	}
	slices.Sort(faults)
	if len(faults) > 0 {
		t.Errorf("%d names do not follow the table of words in CONTRIBUTING.md:\n%s", len(faults), strings.Join(faults, "\n"))
	}
}

// An exportedName is a constant, variable, type, function, method or field.
type exportedName struct {
	recv, name string
	kind       string // "func", "type", "value" or "field"
	fn         *ast.FuncType
}

func (n exportedName) String() string {
	if n.recv != "" {
		return n.recv + "." + n.name
	}
	return n.name
}

// The words that no name may contain, and those that no function or method may begin with.
var (
	badWords = map[string]string{
		"Feed": "use Append or Add", "Feeds": "use another noun", "Push": "use Append or Add", "Ingest": "use Add", "Hear": "use Read or Parse",
		"Heard": "use Received", "Settle": "use Finish", "Asked": "use Lookup, or Requested", "Unset": "use Unspecified or None",
		"Unsaid": "use Unspecified or None", "Nothing": "use None", "Trail": "use a term of the field", "Fate": "use Outcome",
		"Fates": "use Outcomes", "Wish": "use Request or Hint", "Wishes": "use Requests or Hints", "Carrier": "use Token or Encoding",
		"Said": "use Declared or Given",
	}
	badStarts = map[string]string{
		"Apply": "use Add, or name what it does", "Resolve": "use Lookup", "To": "use a plain noun", "Get": "use a plain noun",
		"For": "use New or Lookup", "Open": "use New, Load or Parse", "Compile": "use New or Parse", "From": "use New, Load or Parse",
	}
	badNames  = map[string]string{"NoKind": "use None", "NoCause": "use None", "NotSeen": "use None", "CloseStopped": "use Finish"}
	badEnds   = map[string]string{"ByName": "use Lookup", "Of": "use a plain noun"}
	ends      = []string{"Finish", "Fail"} // what a stream encoder or decoder has besides Append
	placeUser = "router"                   // which places requests
)

// fault returns why the name does not follow the table, or "".
func (n exportedName) fault(module string) string {
	words := split(n.name)
	for i, w := range words {
		if why := badWords[w]; why != "" {
			return w + ": " + why
		}
		if w == "Place" && module != placeUser && (i == 0 || words[i-1] != "In") {
			return "Place: use Position or Ref"
		}
	}
	if why := badNames[n.name]; why != "" {
		return why
	}
	if n.kind != "func" {
		return ""
	}
	if why := badStarts[words[0]]; why != "" && (n.recv == "" || words[0] != "Open") {
		return words[0] + ": " + why
	}
	for end, why := range badEnds {
		if strings.HasSuffix(n.name, end) && n.name != "Of" {
			return end + ": " + why
		}
	}
	if n.name == "Close" && (count(n.fn.Params) > 0 || count(n.fn.Results) != 1 || expr(n.fn.Results.List[0].Type) != "error") {
		return "Close gives resources back: want Close() error, or use Finish"
	}
	return n.signature()
}

// signature checks the rules about dst and options.
func (n exportedName) signature() string {
	if count(n.fn.Params) == 0 {
		return ""
	}
	first := n.fn.Params.List[0]
	if len(first.Names) > 0 && first.Names[0].Name == "dst" && count(n.fn.Results) > 0 {
		dst := expr(first.Type)
		if strings.HasPrefix(dst, "[]") && dst == expr(n.fn.Results.List[0].Type) && !strings.HasPrefix(n.name, "Append") && !slices.Contains(ends, n.name) {
			return "it appends to dst: use Append or AppendX"
		}
	}
	for i, p := range n.fn.Params.List {
		typ := expr(p.Type)
		switch {
		case !strings.HasSuffix(typ, "Options"):
		case !strings.HasPrefix(typ, "*"):
			return "options are a pointer, nil for defaults"
		case i < len(n.fn.Params.List)-1:
			return "options are the last parameter"
		}
	}
	return ""
}

// split returns the words of a name: ToolCallID is Tool, Call, ID.
func split(name string) (words []string) {
	start, r := 0, []rune(name)
	for i := 1; i <= len(r); i++ {
		if i == len(r) || unicode.IsUpper(r[i]) && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			words = append(words, string(r[start:i]))
			start = i
		}
	}
	return words
}

func count(l *ast.FieldList) int {
	if l == nil {
		return 0
	}
	return l.NumFields()
}

// expr returns the source of a simple type.
func expr(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + expr(e.X)
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + expr(e.Elt)
		}
	case *ast.SelectorExpr:
		return expr(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return expr(e.X) + "[" + expr(e.Index) + "]"
	}
	return fmt.Sprintf("%T", e)
}

// exportedNames returns the exported names of the package in dir.
func exportedNames(dir string) (names []exportedName, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	for _, f := range files {
		if f.IsDir() || !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if file.Name.Name == "main" {
			continue
		}
		for _, d := range file.Decls {
			names = append(names, declared(d)...)
		}
	}
	return names, nil
}

// declared returns the exported names in a declaration.
func declared(d ast.Decl) (names []exportedName) {
	add := func(n exportedName) {
		if ast.IsExported(n.name) && (n.recv == "" || ast.IsExported(n.recv)) {
			names = append(names, n)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		n := exportedName{name: d.Name.Name, kind: "func", fn: d.Type}
		if d.Recv != nil {
			n.recv = strings.TrimPrefix(expr(d.Recv.List[0].Type), "*")
			n.recv, _, _ = strings.Cut(n.recv, "[")
		}
		add(n)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					add(exportedName{name: id.Name, kind: "value"})
				}
			case *ast.TypeSpec:
				add(exportedName{name: s.Name.Name, kind: "type"})
				var list *ast.FieldList
				switch t := s.Type.(type) {
				case *ast.StructType:
					list = t.Fields
				case *ast.InterfaceType:
					list = t.Methods
				default:
					continue
				}
				for _, f := range list.List {
					for _, id := range f.Names {
						n := exportedName{recv: s.Name.Name, name: id.Name, kind: "field"}
						if fn, ok := f.Type.(*ast.FuncType); ok {
							if _, isInterface := s.Type.(*ast.InterfaceType); isInterface {
								n.kind, n.fn = "func", fn
							}
						}
						add(n)
					}
				}
			}
		}
	}
	return names
}

// TestWordRules sees the rules refuse what they are for.
func TestWordRules(t *testing.T) {
	const src = `package p
func Feed() {}
func (T) CloseStopped() {}
func (T) Close(dst []byte) []byte { return nil }
func (*U[X]) Close() {}
func (V) Close() error { return nil }
func ByName(s string) {}
func StartOf(s string) {}
func Of(s string) {}
func GetX() {}
func Getter() {}
func Total() {}
func ToX() {}
func Open() {}
func (T) Open() {}
func Encode(dst []byte, x int) []byte { return dst }
func AppendX(dst []byte, x int) ([]byte, error) { return dst, nil }
func Finish(dst []T) []T { return dst }
func Copy(dst []byte, x int) int { return 0 }
func New(o Options) {}
func Load(o *p.Options, x int) {}
func Parse(x int, o *DecodeOptions) {}
func (t) Feed() {}
type Carrier struct { Place, Trail, Placement int; unset int }
const TierUnset, NoKind, None = 0, 1, 2
type T interface { Push() }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range file.Decls {
		for _, n := range declared(d) {
			if n.fault("parsers") != "" {
				got = append(got, n.String())
			}
		}
	}
	want := strings.Fields("Feed T.CloseStopped T.Close U.Close ByName StartOf GetX ToX Open Encode New Load Carrier Carrier.Place Carrier.Trail TierUnset NoKind T.Push")
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
