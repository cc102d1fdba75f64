// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/catalog"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// Model is a model with its engines. The fields are as in [Options].
type Model struct {
	Name      string
	Aliases   []string
	Records   []catalog.Model
	Prompts   *prompt.Model
	Engines   []Engine
	Placement policy.Policy

	MaxModelLen int
	BlockSize   int
}

// A deployment is a model that the gateway serves. It is safe for concurrent use by multiple goroutines.
type deployment struct {
	name     string // at clients and engines
	families families
	fleet    *fleet
	blocks   int // tokens per cache block
	longest  int // bytes of the longest token
}

// managed reports whether the engines are managed endpoints.
func (d *deployment) managed() bool { return d.families.model == nil }

// managed reports whether the engines of a model are managed endpoints. Engines of both sorts are an error.
func (m *Model) managed() (bool, error) {
	n := 0
	for _, e := range m.Engines {
		if _, ok := e.Kind.(upstream.Managed); ok {
			n++
		}
	}
	if n > 0 && n < len(m.Engines) {
		return false, fmt.Errorf("serve: model %q: managed endpoints and other engines must be different models", m.Name)
	}
	return n > 0, nil
}

// adapters returns the adapters that the engines of a model have.
func (m *Model) adapters() (names []string) {
	for _, e := range m.Engines {
		names = append(names, e.Adapters...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// models returns the models of the options, the first of which is the options' own, with defaults.
func (o *Options) models() ([]*Model, error) {
	all := append([]Model{{
		Name: o.Model, Aliases: o.Aliases, Records: o.Models, Prompts: o.Prompts, Engines: o.Engines, Placement: o.Placement,
		MaxModelLen: o.MaxModelLen, BlockSize: o.BlockSize,
	}}, o.More...)
	var list []*Model
	for i := range all {
		m := &all[i]
		m.BlockSize = cmp.Or(m.BlockSize, DefaultBlockSize)
		managed, err := m.managed()
		if err != nil {
			return nil, err
		}
		switch {
		case m.Name == "":
			return nil, errors.New("serve: no model name")
		case managed && m.Prompts != nil:
			return nil, errors.New("serve: Prompts must be nil for managed endpoints, which render prompts themselves")
		case managed:
		case m.Prompts == nil || m.Prompts.Tokenizer() == nil || m.Prompts.Family() == "":
			return nil, errors.New("serve: Prompts must have a tokenizer and a family")
		case len(m.Engines) == 0:
			return nil, errors.New("serve: no engine")
		case m.MaxModelLen < 0 || m.BlockSize < 0:
			return nil, errors.New("serve: MaxModelLen and BlockSize must not be negative")
		}
		list = append(list, m)
	}
	return list, nil
}

// deploy creates the deployment of a model.
func (g *Gateway) deploy(m *Model) error {
	f, err := newFleet(&g.opt, m)
	if err != nil {
		return err
	}
	d := &deployment{name: m.Name, fleet: f, families: families{model: m.Prompts, named: map[string]*prompt.Model{}}, blocks: m.BlockSize}
	if !d.managed() {
		d.longest = longestToken(m.Prompts.Tokenizer())
		if why := m.Prompts.Cache().Err(); why != nil {
			g.opt.Logger.Info("prompt cache unavailable", "model", m.Name, "err", why)
		}
	}
	g.names = append(g.names, m.Name)
	g.deployments[m.Name] = d
	return nil
}

// lookup returns the record for the name of a model in a request, and its deployment.
func (g *Gateway) lookup(name string) (*catalog.Model, *deployment, bool) {
	m, ok := g.models.Lookup(name)
	if !ok && g.opt.AnyModel {
		m, ok = g.models.Lookup(g.opt.Model)
	}
	if !ok {
		return nil, nil, false
	}
	return m, g.deployments[cmp.Or(m.AliasOf, m.ID)], true
}

// newCatalog returns the records of the models and their aliases, and sets MaxModelLen where it is 0.
func newCatalog(models []*Model) (*catalog.Catalog, error) {
	var all []catalog.Model
	windows := make(map[string]int) // by model
	for _, o := range models {
		list := slices.Clone(o.Records)
		if !slices.ContainsFunc(list, func(m catalog.Model) bool { return m.ID == o.Name }) {
			list = slices.Insert(list, 0, catalog.Model{ID: o.Name})
		}
		for _, name := range o.Aliases {
			list = append(list, catalog.Model{ID: name})
		}
		for _, name := range o.adapters() {
			if !slices.ContainsFunc(o.Records, func(m catalog.Model) bool { return m.ID == name }) {
				list = append(list, catalog.Model{ID: name})
			}
		}
		for i := range list {
			m := &list[i]
			if m.ID != o.Name {
				m.AliasOf = cmp.Or(m.AliasOf, o.Name)
				continue
			}
			if m.AliasOf != "" {
				return nil, &catalog.Error{ID: m.ID, Field: "alias_of", Msg: "must be empty for the model itself"}
			}
			window := 131072
			if o.Prompts != nil {
				window = cmp.Or(o.Prompts.Window(), window)
			}
			o.MaxModelLen = cmp.Or(o.MaxModelLen, int(min(m.ContextWindow, math.MaxInt)), window)
			m.ContextWindow = cmp.Or(m.ContextWindow, int64(o.MaxModelLen))
			if m.Modalities == nil && o.Prompts != nil {
				m.Modalities = []string{"text"} // prompts omit other modalities
			}
		}
		windows[o.Name] = o.MaxModelLen
		all = append(all, list...)
	}
	c, err := catalog.New(all...)
	if err != nil {
		return nil, err
	}
	for _, m := range c.Models() {
		if window := windows[cmp.Or(m.AliasOf, m.ID)]; m.ContextWindow > int64(window) {
			return nil, &catalog.Error{ID: m.ID, Field: "context_window", Msg: fmt.Sprintf("exceeds the limit of %d tokens per request", window)}
		}
	}
	return c, nil
}
