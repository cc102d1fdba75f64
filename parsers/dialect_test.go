// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
)

// dialect writes output as the models of a family do, from nothing but its grammar. Tests that hold for every family
// are written with it, so that a new family is under them at once.
type dialect struct {
	name           string
	g              *grammar.Grammar
	think, unthink string // around reasoning; "" if the family has none
	say, unsay     string // around text
	block, unblock string // around calls
	call           func(tool string) string
	uncall         string
	param          func(nth int, key, typ string) string // before a value; typ is string, number or object
	unparam        func(key, typ string) string
	object         string              // an object as a value
	quote          func(string) string // text inside a string value
	mute           bool                // it has no calls
	bare           bool                // calls have no tag and begin the response
	held           bool                // calls are held until they are whole
}

// dialects returns the dialects of all families.
func dialects(t testing.TB) []*dialect {
	t.Helper()
	var out []*dialect
	for _, name := range parsers.Default().Names() {
		out = append(out, dialectOf(t, name))
	}
	return out
}

func same(s string) string { return s }

func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s)
}

func dialectOf(t testing.TB, name string) *dialect {
	t.Helper()
	g, err := parsers.Default().Lookup(name)
	require.NoError(t, err)
	d := &dialect{name: name, g: g, object: `{"a":[1,true,null]}`, quote: same}
	if g.Tagged != nil {
		if r := g.Tagged.Reasoning; r != nil {
			d.think, d.unthink = r.Open.Text+r.Label, r.Close.Text
		}
		d.tagged(t, g.Tagged)
	}
	if c := g.Channels; c != nil {
		d.channels(t, c)
	}
	if e := g.Elements; e != nil {
		tag := func(name string) string { return e.Open.Text + name + e.Sep.Text }
		shut := func(name string) string { return e.Close.Text + name + e.Sep.Text }
		d.think, d.unthink = tag("think"), shut("think")
		d.say, d.unsay = tag("response"), shut("response")
		d.block, d.unblock = tag("tools"), shut("tools")
		d.call = func(tool string) string { return tag(`call tool="` + tool + `"`) }
		d.uncall = shut("call")
		d.param = func(_ int, key, typ string) string {
			return tag(`argument key="` + key + `" type="` + typ + `"`)
		}
		d.unparam = func(string, string) string { return shut("argument") }
	}
	return d
}

func (d *dialect) channels(t testing.TB, c *grammar.Channels) {
	t.Helper()
	if c.Body.Text == "" {
		d.kinds(c)
		return
	}
	header := func(channel, recipient string) string {
		s := ""
		for _, sec := range c.Sections {
			switch sec.Field {
			case grammar.Role:
				s += sec.Marker.Text + "assistant"
			case grammar.Channel:
				s += sec.Marker.Text + channel
			}
		}
		if recipient != "" {
			s += " " + c.Recipient + recipient
		}
		return s + c.Body.Text
	}
	end := c.Ends[0].Text
	d.unthink, d.unsay = end, end
	if to, ok := strings.CutPrefix(c.Reasoning[0], c.Recipient); ok {
		d.think, d.say = header("", to), header("", strings.TrimPrefix(c.Text[0], c.Recipient))
	} else {
		d.think, d.say = header(c.Reasoning[0], ""), header(c.Text[0], "")
	}
	if c.Calls != nil {
		d.tagged(t, c.Calls)
		open := d.call
		block, unblock := d.block, d.unblock
		d.block, d.unblock = "", ""
		d.call = func(tool string) string { return header("", tool) + block + open(tool) }
		d.uncall += unblock + end
		return
	}
	d.call = func(tool string) string { return header("commentary", c.ToolPrefix+tool) + "{" }
	d.uncall = "}" + c.Ends[1].Text
	d.json()
}

// kinds is channels for families whose headers end in a marker that routes.
func (d *dialect) kinds(c *grammar.Channels) {
	header, end := c.Sections[0].Marker.Text, c.Ends[0].Text
	d.unthink, d.unsay, d.uncall = end, end, "}}"+end
	for _, k := range c.Sections {
		open := k.Marker.Text
		switch {
		case k.Field == grammar.ReasoningBody:
			d.think = header + open
		case k.Field == grammar.TextBody && d.say == "":
			d.say = header + open
		case k.Field == grammar.CallBody:
			d.call = func(tool string) string {
				return header + tool + open + `{"` + c.Object.Name[0] + `":"` + tool + `","` + c.Object.Arguments[0] + `":{`
			}
		}
	}
	d.json()
}

func (d *dialect) json() {
	d.quote = escaped
	d.param = func(nth int, key, typ string) string {
		s := `"` + key + `": `
		if nth > 0 {
			s = ", " + s
		}
		if typ == "string" {
			s += `"`
		}
		return s
	}
	d.unparam = func(_, typ string) string {
		if typ == "string" {
			return `"`
		}
		return ""
	}
}

func (d *dialect) tagged(t testing.TB, g *grammar.Tagged) {
	t.Helper()
	if w := g.Wrapper; w != nil {
		d.block, d.unblock = w.Open.Text, w.Close.Text
	}
	open := func(tool string) string { return g.Open.Text }
	if n := g.Name; n != nil {
		end := "" // Stops belong to the body
		if len(n.Ends) > 0 {
			end = n.Ends[0]
		}
		if n.Number != "" {
			end = n.Number + "0" + end
		}
		open = func(tool string) string { return g.Open.Text + n.Prefix + tool + end }
	}
	b := g.Body
	switch {
	case g.Name != nil && b.Params == nil && b.Codec == nil:
		before, following := "{", "}"
		if b.Fence != "" {
			before, following = b.Fence+"json\n{", "}\n"+b.Fence
		}
		d.call = func(tool string) string { return open(tool) + before }
		d.uncall = following + g.Close.Text
		d.json()
	case b.Params != nil:
		d.call, d.uncall = open, g.Close.Text
		p := b.Params
		line := ""
		if p.Newline {
			line = "\n"
		}
		d.param = func(_ int, key, typ string) string {
			attr := ""
			if p.Attr != "" {
				attr = " " + p.Attr + `="false"`
				if typ == "string" {
					attr = " " + p.Attr + `="true"`
				}
			}
			return p.Open + key + p.KeyEnd + attr + p.Value + line
		}
		d.unparam = func(string, string) string { return line + p.Close }
		if p.Value == "<![CDATA[" {
			d.unparam = func(string, string) string { return "]]>" + p.Close }
		}
	case b.Codec != nil:
		d.codec(t, g, open)
	case b.Call == nil:
		d.mute = true
		d.call, d.param, d.unparam = same, func(int, string, string) string { return "" }, func(string, string) string { return "" }
	case b.List == grammar.Dicts:
		d.held = true
		d.object = "{'a': [1, True, None]}"
		d.call = func(tool string) string {
			return open(tool) + "[{'" + b.Call.Name[0] + "': '" + tool + "', '" + b.Call.Arguments[0] + "': {"
		}
		d.uncall = "}}]" + g.Close.Text
		d.json()
	default:
		d.bare = g.Open.Text == ""
		d.call = func(tool string) string {
			if len(b.Call.Name) == 0 {
				return open(tool) + `{"` + tool + `": {`
			}
			return open(tool) + `{"` + b.Call.Name[0] + `": "` + tool + `", "` + b.Call.Arguments[0] + `": {`
		}
		d.uncall = "}}" + g.Close.Text
		d.json()
	}
}

func (d *dialect) codec(t testing.TB, g *grammar.Tagged, open func(string) string) {
	t.Helper()
	quote, equals := "", "="
	switch c := g.Body.Codec.(type) {
	case codec.Gemma:
		d.object = "{a:[1,true,null]}"
		if quote = c.Quote; quote == "" {
			quote = `<|"|>`
		}
		equals = ":"
		d.call = func(tool string) string { return open(tool) + "{" }
		d.uncall = "}" + g.Close.Text
	case codec.Python:
		d.object = "{'a': [1, True, None]}"
		quote, d.quote = `"`, escaped
		d.block += "["
		d.unblock = "]" + d.unblock
		d.call, d.uncall = open, ")"
	case codec.Nested:
		d.call, d.uncall = open, g.Close.Text
		d.param = func(_ int, key, _ string) string { return c.Prefix + "<" + key + ">" }
		d.unparam = func(key, _ string) string { return c.Prefix + "</" + key + ">" }
		return
	default:
		t.Fatalf("%s: the dialect does not know codec %T", d.name, c)
	}
	d.param = func(nth int, key, typ string) string {
		s := key + equals
		if nth > 0 {
			s = "," + s
		}
		if typ == "string" {
			s += quote
		}
		return s
	}
	d.unparam = func(_, typ string) string {
		if typ == "string" {
			return quote
		}
		return ""
	}
}

// value is an argument that a test writes: key and raw text of its value.
type value struct{ key, typ, text string }

// one writes a whole call; text of string values is quoted.
func (d *dialect) one(tool string, vs ...value) string {
	s := d.call(tool)
	for i, v := range vs {
		text := v.text
		if v.typ == "string" {
			text = d.quote(text)
		}
		s += d.param(i, v.key, v.typ) + text + d.unparam(v.key, v.typ)
	}
	return s + d.uncall
}

// head is the text of a separate call before the value of its first argument, and tail the text after it.
func (d *dialect) head(tool, key, typ string) string {
	return d.block + d.call(tool) + d.param(0, key, typ)
}

func (d *dialect) tail(key, typ string) string { return d.unparam(key, typ) + d.uncall + d.unblock }

// TestDialects asserts that the families read the output that the other tests write.
func TestDialects(t *testing.T) {
	for _, d := range dialects(t) {
		t.Run(d.name, func(t *testing.T) {
			if d.mute {
				t.Skip("no calls")
			}
			in := d.block + d.one("run", value{"cmd", "string", "ls \"-l\"\nrm"}) + d.unblock
			opt := parsers.Options{Start: parsers.StartTurn}
			require.Equal(t, `call run {"cmd":"ls \"-l\"\nrm"}`+"\n", compact(assembled(parse(t, d.name, opt, in))), "%s", in)

			in = d.block + d.one("put", value{"s", "string", "a"}, value{"i", "number", "12"}, value{"o", "object", d.object}) + d.unblock
			require.Equal(t, `call put {"s":"a","i":12,"o":{"a":[1,true,null]}}`+"\n",
				compact(assembled(parse(t, d.name, opt, in))), "%s", in)

			in = ""
			want := ""
			if d.think != "" && !(d.g.Tagged != nil && d.g.Tagged.Reasoning.Inline) {
				in, want = d.think+"because"+d.unthink, "reasoning \"because\"\n"
			}
			if !d.bare {
				in += d.say + "so" + d.unsay
				want += "text \"so\"\n"
			}
			in += d.block + d.one("now") + d.unblock
			want += "call now {}\n"
			require.Equal(t, want, compact(assembled(parse(t, d.name, opt, in))), "%s", in)
		})
	}
}

// compact removes the parts that some families copy from the model: blanks between fields and the ids of calls.
func compact(s string) string {
	s = strings.NewReplacer(`": `, `":`, `, "`, `,"`).Replace(s)
	for _, tool := range []string{"run", "put", "now"} {
		s = strings.ReplaceAll(s, " id=functions."+tool+":0", "")
	}
	return s
}
