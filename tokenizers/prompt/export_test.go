// SPDX-License-Identifier: Apache-2.0

package prompt

import "github.com/weft-go/weft/tokenizers/template"

// ReadsJSON returns a copy of m that passes conversations to the template as JSON.
func ReadsJSON(m *Model) *Model {
	out := *m
	out.template = struct{ template.Template }{m.template}
	return &out
}

// ReadsValues reports whether m passes conversations to the template as values.
func ReadsValues(m *Model) bool {
	_, ok := m.template.(valueTemplate)
	return ok
}

// AppendIDs is appendIDs.
func AppendIDs(dst []byte, ids []uint32) []byte { return appendIDs(dst, ids) }
