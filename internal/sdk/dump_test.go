// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"fmt"
	"strings"

	"github.com/weft-go/weft/protocols/block"
)

// dump writes the content of a request, a line for each parameter, tool and block; absent values are left out.
func dump(r *block.Request) string {
	var d dumper
	d.params(r.Params())
	for _, t := range r.Tools() {
		d.begin("tool " + []string{"function", "custom", "hosted"}[t.Kind])
		d.str("type", t.Type).str("space", t.Namespace).str("name", t.Name).str("about", t.Description)
		d.raw("schema", t.Schema).raw("format", t.Format).ptr("strict", t.Strict).flag("deferred", t.Deferred).cache(t.Cache)
		d.end()
	}
	for _, t := range r.Turns() {
		d.begin(t.Role.String()).flag(t.Kind.String(), t.Kind != 0).str("id", t.ID).str("name", t.Name).end()
		d.blocks(t.Blocks, "  ")
	}
	return d.String()
}

type dumper struct{ strings.Builder }

func (d *dumper) begin(s string) *dumper { d.WriteString(s); return d }
func (d *dumper) end()                   { d.WriteByte('\n') }

func (d *dumper) flag(name string, on bool) *dumper {
	if on {
		d.WriteString(" " + name)
	}
	return d
}

func (d *dumper) str(name, s string) *dumper {
	if s != "" {
		fmt.Fprintf(d, " %s=%q", name, s)
	}
	return d
}

func (d *dumper) raw(name string, b []byte) *dumper {
	if b != nil {
		fmt.Fprintf(d, " %s=%s", name, b)
	}
	return d
}

// ptr writes a pointer's value if it is not nil.
func (d *dumper) ptr(name string, p any) *dumper {
	switch p := p.(type) {
	case *bool:
		if p != nil {
			fmt.Fprintf(d, " %s=%v", name, *p)
		}
	case *int64:
		if p != nil {
			fmt.Fprintf(d, " %s=%v", name, *p)
		}
	case *float64:
		if p != nil {
			fmt.Fprintf(d, " %s=%v", name, *p)
		}
	}
	return d
}

func (d *dumper) cache(c *block.Cache) *dumper {
	if c != nil {
		d.WriteString(" cache=" + strings.TrimSuffix(c.Type+"/"+c.TTL, "/"))
	}
	return d
}

func (d *dumper) params(p block.Params) {
	d.begin("params").str("model", p.Model).flag("stream", p.Stream).flag("usage", p.StreamUsage).ptr("max", p.MaxTokens)
	d.str("verbosity", p.Verbosity).str("user", p.User).str("key", p.CacheKey).str("tier", p.ServiceTier).end()
	s := p.Sampling
	d.begin("sampling").ptr("temperature", s.Temperature).ptr("top_p", s.TopP).ptr("min_p", s.MinP).ptr("top_k", s.TopK).ptr("seed", s.Seed)
	d.ptr("n", s.N).ptr("frequency", s.FrequencyPenalty).ptr("presence", s.PresencePenalty).ptr("repetition", s.RepetitionPenalty)
	d.flag("logprobs", s.Logprobs).ptr("top", s.TopLogprobs).flag("ignore_eos", s.IgnoreEOS)
	if len(s.Stop)+len(s.StopTokens) > 0 {
		fmt.Fprintf(d, " stop=%q%v", s.Stop, s.StopTokens)
	}
	d.end()
	if c := p.ToolChoice; c.Mode != 0 || len(c.Allow) > 0 || c.Serial {
		d.begin("choice "+[]string{"default", "auto", "none", "required"}[c.Mode]).flag("serial", c.Serial)
		if c.Allow != nil {
			fmt.Fprintf(d, " allow=%q", c.Allow)
		}
		d.end()
	}
	if t := p.Thinking; t != (block.Thinking{}) {
		d.begin("thinking").flag([]string{"", "on", "off", "adaptive"}[t.Mode], t.Mode != block.ThinkingUnspecified)
		d.str("effort", t.Effort).ptr("budget", t.Budget).str("summary", t.Summary).end()
	}
	if f := p.Format; f.Type != "" {
		d.begin("format "+f.Type).str("name", f.Name).raw("schema", f.Schema).ptr("strict", f.Strict).end()
	}
}

func (d *dumper) blocks(list []block.Block, indent string) {
	for i := range list {
		b := &list[i]
		d.begin(indent+b.Kind.String()).str("type", b.Type).str("id", b.ID).str("text", b.Text)
		d.str("signature", b.Signature).str("encrypted", b.Encrypted).flag("summary", b.Summary).flag("redacted", b.Redacted)
		d.str("call", b.CallID).str("space", b.Namespace).str("name", b.Name)
		if b.Args != "" {
			d.WriteString(" args=" + b.Args)
		}
		d.flag("custom", b.Custom).flag("server", b.Server).flag("error", b.IsError)
		if m := b.Media; m != nil {
			d.str("mime", m.MIME).str("url", m.URL).str("data", m.Data).str("file", m.FileID).str("called", m.Name).str("detail", m.Detail)
		}
		d.cache(b.Cache).end()
		d.blocks(b.Content, indent+"  ")
	}
}
