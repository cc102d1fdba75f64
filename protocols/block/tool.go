// SPDX-License-Identifier: Apache-2.0

package block

// ToolKind specifies the input of a tool and where the tool runs.
type ToolKind uint8

// The kinds of tools.
const (
	Function   ToolKind = iota // JSON arguments under a schema
	CustomTool                 // free text, optionally with a grammar
	Hosted                     // run by the server, or with a schema that the API defines; identified by Type only
)

// Tool is a tool that the request declares.
type Tool struct {
	Kind        ToolKind
	Name        string
	Namespace   string // Responses: the namespace that contains the tool
	Description string
	// Schema is the JSON schema of the arguments, as valid raw JSON, or nil if absent.
	Schema []byte
	// Format is the format of a custom tool's input as raw JSON, or nil for plain text.
	Format   []byte
	Strict   *bool  // nil if absent
	Deferred bool   // declared, but available only after a tool reference names it
	Type     string // the type in the API: function, custom, web_search_20250305
	Cache    *Cache
	At       Ref

	// ModelName is the name by which the model knows the tool: Name, or Namespace__Name if several tools share a Name.
	// The request that contains the tool sets it.
	ModelName string

	// JSON is the declaration of a Hosted tool, as valid JSON.
	JSON []byte

	rest, space *residue // detached requests: residues of the tool and of the namespace that begins with it
	lost        []Loss   // losses of any conversion
}

// equal reports whether two tools are the same. It ignores At and Type. Hosted tools are compared by JSON, as bytes.
func (t *Tool) equal(o *Tool) bool {
	if t.Kind != o.Kind || t.Name != o.Name || t.Namespace != o.Namespace || t.Description != o.Description ||
		string(t.Schema) != string(o.Schema) || string(t.Format) != string(o.Format) || t.Deferred != o.Deferred ||
		!equalPtr(t.Strict, o.Strict) || !equalPtr(t.Cache, o.Cache) {
		return false
	}
	return t.Kind != Hosted || string(t.JSON) == string(o.JSON)
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
