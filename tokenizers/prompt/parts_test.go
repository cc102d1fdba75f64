// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/wire"
)

// TestPartsOfMessage checks what separates the text parts of a message: what the template prints between the parts of a
// list, or a newline if it reads only strings.
func TestPartsOfMessage(t *testing.T) {
	const (
		head  = `{% for m in messages %}<{{ m.role }}>`
		tail  = `{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}{{ tools or '' }}`
		whole = `{{ m.content }}`
		parts = `{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}`
		mixed = `{% if m.content is string %}{{ m.content }}{% elif m.role == 'tool' %}{% for p in m.content %}{{ p.text }}{{ '\n\n' if not loop.last }}{% endfor %}{% elif m.role == 'user' %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}`
		two   = `[{"type":"text","text":"1"},{"type":"text","text":"2"}]`
		call  = `{"type":"tool_use","id":"c","name":"f","input":{}}`
		body  = `{"model":"m","max_tokens":9,"system":` + two + `,"messages":[{"role":"user","content":` + two + `},{"role":"assistant","content":[{"type":"text","text":"1"},{"type":"text","text":"2"},` + call + `]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":` + two + `},{"type":"text","text":"<system-reminder>r</system-reminder>"}]}]}`
	)
	for _, test := range []struct{ name, source, want string }{
		{"strings", head + whole + tail, "<system>1\n2<user>1\n2<assistant>1\n2[f {}]<tool>1\n2\n<system-reminder>r</system-reminder>"},
		{"lists", head + parts + tail, "<system>12<user>12<assistant>12[f {}]<tool>12\n<system-reminder>r</system-reminder>"},
		{"lists of some roles", head + mixed + tail, "<system>1\n2<user>12<assistant>1\n2[f {}]<tool>1\n\n2\n<system-reminder>r</system-reminder>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := familyModel(t, compiled(test.source)(t), nil)
			r, err := wire.Messages.Decode([]byte(body), nil)
			require.NoError(t, err)
			p, err := m.Render(r, noon)
			require.NoError(t, err)
			require.Equal(t, test.want, p.Text)
		})
	}
}
