// SPDX-License-Identifier: Apache-2.0

package block

// ToolKind says how a tool takes its input and who runs it.
type ToolKind uint8

// The kinds of tools.
const (
	Function   ToolKind = iota // JSON arguments under a schema
	CustomTool                 // free text, perhaps under a grammar
	Hosted                     // run by the serving side, or with a schema that the API defines; known by Type only
)

// Tool is a tool that the request declares.
type Tool struct {
	Kind        ToolKind
	Name        string
	Namespace   string // Responses: the namespace that holds the tool
	Description string
	// Schema is the JSON schema of the arguments, as raw and valid JSON; nil for none.
	Schema []byte
	// Format is the format of a custom tool's input, as raw JSON; nil for plain text.
	Format   []byte
	Strict   *bool  // nil: not said
	Deferred bool   // declared, but only available once a tool reference names it
	Type     string // the type in the API: function, custom, web_search_20250305
	Cache    *Cache
	At       Ref

	// ModelName is the name the model sees: Name, or Namespace__Name where two tools share a Name. The request that
	// holds the tool sets it.
	ModelName string

	// JSON is the declaration, as valid JSON, of a Hosted tool that was not read from a body. [Tool.Raw] is the one to
	// read.
	JSON []byte

	rest, space *residue // of a detached request: of the tool, of the namespace that begins with it
	lost        []Loss   // what no conversion carries of it
}

// Raw returns the tool's JSON as it stood when it was read, the field JSON for a tool of your own.
func (t *Tool) Raw() []byte {
	if t.At.doc == nil {
		return t.JSON
	}
	return t.At.doc.At(int(t.At.node)).Raw()
}

// Equal reports whether two tools say the same. It ignores where they stand and Type; hosted tools are compared by their
// raw bytes.
func (t Tool) Equal(o Tool) bool {
	if t.Kind != o.Kind || t.Name != o.Name || t.Namespace != o.Namespace || t.Description != o.Description ||
		string(t.Schema) != string(o.Schema) || string(t.Format) != string(o.Format) || t.Deferred != o.Deferred ||
		!equalPtr(t.Strict, o.Strict) || !equalPtr(t.Cache, o.Cache) {
		return false
	}
	return t.Kind != Hosted || string(t.Raw()) == string(o.Raw())
}

// nameTools sets ModelName.
func nameTools(tools []Tool) {
	spaces := false
	for i := range tools {
		tools[i].ModelName = tools[i].Name
		spaces = spaces || tools[i].Namespace != ""
	}
	if !spaces {
		return
	}
	count := make(map[string]int, len(tools))
	for i := range tools {
		count[tools[i].Name]++
	}
	for i := range tools {
		if t := &tools[i]; t.Namespace != "" && count[t.Name] > 1 {
			t.ModelName = t.Namespace + "__" + t.Name
		}
	}
}

// ReferenceText is how a [ToolReference] reads where there is only text.
func ReferenceText(name string) string { return "Tool " + name + " is available now." }
