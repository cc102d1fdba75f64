// SPDX-License-Identifier: Apache-2.0

package template

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/internal/folder"
	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
)

// ErrNoTemplate reports a model directory without a chat template.
var ErrNoTemplate = errors.New("template: the model has no chat template")

// Load parses the chat template in a model's directory, which is, as in transformers:
//
//   - chat_template.jinja, and additional_chat_templates/NAME.jinja next to it;
//   - else chat_template of tokenizer_config.json: a string, or a list of objects with name and template;
//   - else chat_template.json, as processors have it.
//
// Of several templates, requests with tools use tool_use if there is one; the others use default. The special tokens of
// tokenizer_config.json (and of special_tokens_map.json, if the former does not list its added tokens, as in old
// models) become variables, unless opt defines them. Tokens that are defined only in a tokenizer's Python class are not
// known.
//
// If the directory has no template or does not exist, the error is a [*tokenizers.DirError]; errors.Is reports
// [ErrNoTemplate] only if the directory exists. If the template cannot be parsed, the error is an [*Error]; if a file
// cannot be read, it is the file system's error. All name the directory if fsys is an os.DirFS.
func Load(fsys fs.FS, opt *Options) (Template, error) {
	t, err := load(fsys, opt)
	if err != nil {
		if dir := folder.Path(fsys); dir != "" {
			err = fmt.Errorf("%s: %w", dir, err)
		}
		return nil, err
	}
	return t, nil
}

func load(fsys fs.FS, opt *Options) (*compiled, error) {
	t := &compiled{}
	if opt != nil {
		t.opt = *opt
	}
	var config struct {
		ChatTemplate       json.RawMessage            `json:"chat_template"`
		AddedTokensDecoder map[string]json.RawMessage `json:"added_tokens_decoder"`
	}
	var all, legacy map[string]json.RawMessage
	for _, f := range []struct {
		name string
		into []any
	}{{"tokenizer_config.json", []any{&config, &all}}, {"special_tokens_map.json", []any{&legacy}}} {
		data, err := fs.ReadFile(fsys, f.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("template: %w", err)
		}
		for _, v := range f.into {
			if err := json.Unmarshal(data, v); err != nil {
				return nil, fmt.Errorf("template: %s: %w", f.name, err)
			}
		}
	}
	if all == nil {
		all = legacy
	} else if config.AddedTokensDecoder == nil {
		maps.Copy(all, legacy)
	}
	t.specialTokens(all)
	templates, err := findTemplates(fsys, config.ChatTemplate)
	if err != nil {
		return nil, err
	}
	def, ok := templates["default"]
	if !ok {
		if len(templates) == 0 {
			return nil, noTemplate(fsys)
		}
		names := slices.Sorted(maps.Keys(templates))
		if use, ok := templates["tool_use"]; ok {
			def = use
		} else {
			return nil, fmt.Errorf("template: no template is called default, but %s", strings.Join(names, ", "))
		}
	}
	t.source = def.source
	if t.main, err = jinja.Compile(def.name, def.source); err != nil {
		return nil, fromJinja(err)
	}
	if use, ok := templates["tool_use"]; ok && use != def {
		t.toolSrc = use.source
		if t.toolUse, err = jinja.Compile(use.name, use.source); err != nil {
			return nil, fromJinja(err)
		}
	}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	return t, nil
}

// noTemplate returns the error for a directory without a template.
func noTemplate(fsys fs.FS) error {
	found, err := folder.Names(fsys)
	if err == nil {
		err = ErrNoTemplate
	}
	return &tokenizers.DirError{Missing: "a chat template (chat_template.jinja, or chat_template in tokenizer_config.json)", Found: found, Err: err}
}

type source struct{ name, source string }

func findTemplates(fsys fs.FS, config json.RawMessage) (map[string]source, error) {
	out := map[string]source{}
	read := func(file, name string) error {
		data, err := fs.ReadFile(fsys, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("template: %w", err)
		}
		out[name] = source{file, string(data)}
		return nil
	}
	if err := read("chat_template.jinja", "default"); err != nil {
		return nil, err
	}
	if _, ok := out["default"]; ok {
		const dir = "additional_chat_templates"
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("template: %w", err)
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".jinja"); ok {
				if err := read(path.Join(dir, e.Name()), name); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
	if len(config) == 0 || string(config) == "null" {
		data, err := fs.ReadFile(fsys, "chat_template.json")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("template: %w", err)
		}
		var v struct {
			ChatTemplate json.RawMessage `json:"chat_template"`
		}
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("template: chat_template.json: %w", err)
		}
		config = v.ChatTemplate
	}
	var one string
	var named []struct{ Name, Template string }
	if json.Unmarshal(config, &one) == nil {
		out["default"] = source{"chat_template", one}
	} else if err := json.Unmarshal(config, &named); err != nil {
		return nil, fmt.Errorf("template: chat_template: %w", err)
	}
	for _, n := range named {
		out[n.Name] = source{cmp.Or(n.Name, "chat_template"), n.Template}
	}
	return out, nil
}

// specialTokens adds the tokens of a configuration that opt does not define.
func (t *compiled) specialTokens(config map[string]json.RawMessage) {
	vars := map[string]any{}
	content := func(raw json.RawMessage) string {
		var o struct{ Content string }
		s := ""
		if json.Unmarshal(raw, &s) != nil && json.Unmarshal(raw, &o) == nil {
			s = o.Content
		}
		return s
	}
	add := func(key string, raw json.RawMessage) {
		if s := content(raw); s != "" {
			vars[key] = s
		}
	}
	for _, key := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		add(key, config[key])
	}
	var extra map[string]json.RawMessage
	if json.Unmarshal(config["extra_special_tokens"], &extra) == nil {
		for key, raw := range extra {
			add(key, raw)
		}
	}
	var more []json.RawMessage
	if json.Unmarshal(config["additional_special_tokens"], &more) == nil && len(more) > 0 {
		var list []string
		for _, raw := range more {
			list = append(list, content(raw))
		}
		vars["additional_special_tokens"] = list
	}
	maps.Copy(vars, t.opt.Variables)
	t.opt.Variables = vars
}
