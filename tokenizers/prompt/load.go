// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/template"
)

// Load reads a model from the root of fsys, normally os.DirFS of a directory that was downloaded from Hugging Face.
//
//   - The tokenizer is loaded by [tokenizers.Load].
//   - The template is loaded by [template.Load]. If the directory has none, it is the built-in format for its
//     model_type, for the version in its tekken.json or the name of its tokenizer.model.v3, or for the control tokens in
//     its vocabulary, or else ChatML as plain text. [Model.Source] describes which it is. ChatML asks for calls in a form that the family's parser reads, or omits tools, as in [New]. Models
//     that use harmony always get the built-in format, as in vLLM, because some published templates fail on tools.
//   - The family is Options.Family, or is inferred from the format, Options.Name, config.json and the directory's name.
//     If the template prints calls, the family's parser must be able to read them; if that of Options.Family cannot and
//     another can, Load returns an error. A template without calls has the family passthrough if nothing else is known.
//   - The context window is the smallest of those that config.json and tokenizer_config.json specify.
//
// Errors name the directory, if fsys is an os.DirFS, and list the files found in it.
func Load(fsys fs.FS, opt *Options) (*Model, error) {
	m, err := load(fsys, opt)
	if err != nil {
		dir := folderName(fsys)
		if dir != "" && strings.Contains(err.Error(), dir) {
			return nil, fmt.Errorf("prompt: load: %w", err)
		}
		return nil, fmt.Errorf("prompt: load %s: %w", cmp.Or(dir, "model"), err)
	}
	return m, nil
}

func load(fsys fs.FS, opt *Options) (*Model, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	tok, err := tokenizers.Load(fsys, nil)
	if err != nil {
		return nil, unusable(fsys, err)
	}
	var cfg config
	if data, err := fs.ReadFile(fsys, "config.json"); err == nil {
		_ = json.Unmarshal(data, &cfg) // optional: the other files suffice
	}
	t, format, source, err := loadTemplate(fsys, tok, &cfg)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	family := o.Family
	o.Tokenizer, o.Family = tok, ""
	m, err := newModel(t, &o)
	if err != nil {
		return nil, err
	}
	m.source, m.verbatim = source, format == "harmony"
	m.ends = cfg.eos() // findFamily adds them to m.stops
	m.window = cmp.Or(o.Window, cfg.window(tok.MaxLength()))
	return m, m.findFamily(family, format, o.Name, cfg.Name, strings.ReplaceAll(cfg.Type, "_", "-"), folderName(fsys))
}

// folderName returns the path of a file system made by os.DirFS, or "" for others.
func folderName(fsys fs.FS) string {
	if v := reflect.ValueOf(fsys); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// unusable replaces an error of the tokenizer by a clearer one if the directory does not exist.
func unusable(fsys fs.FS, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, listErr := fs.ReadDir(fsys, "."); listErr != nil {
		if dir := folderName(fsys); strings.Count(dir, "/") == 1 && !strings.HasPrefix(dir, ".") && !strings.HasPrefix(dir, "/") {
			return fmt.Errorf("no such directory: download the model first, as its id is not a path (%w)", fs.ErrNotExist)
		}
		return fmt.Errorf("no such directory (%w)", fs.ErrNotExist)
	}
	return err // a *tokenizers.DirError lists missing and existing files
}

// config contains the used fields of config.json.
type config struct {
	Type string  `json:"model_type"`
	Name string  `json:"_name_or_path"`
	EOS  eos     `json:"eos_token_id"`
	Text *config `json:"text_config"` // of models with image input
	LLM  *config `json:"llm_config"`

	Rope *rope `json:"rope_scaling"`

	Positions   float64 `json:"max_position_embeddings"`
	NPositions  float64 `json:"n_positions"`
	MaxSeqLen   float64 `json:"max_seq_len"`
	SeqLength   float64 `json:"seq_length"`
	MaxSequence float64 `json:"max_sequence_length"`
	MaxLength   float64 `json:"model_max_length"`
}

type rope struct {
	Type     string  `json:"type"`
	RopeType string  `json:"rope_type"`
	Factor   float64 `json:"factor"`
	Original float64 `json:"original_max_position_embeddings"`
}

// eos is decoded from one id or a list of ids.
type eos []uint32

// UnmarshalJSON ignores other values.
func (e *eos) UnmarshalJSON(data []byte) error {
	var one uint32
	var list []uint32
	switch {
	case bytes.Equal(data, []byte("null")):
	case json.Unmarshal(data, &one) == nil:
		*e = eos{one}
	case json.Unmarshal(data, &list) == nil:
		*e = list
	}
	return nil
}

// text returns the part of c that describes the language model.
func (c *config) text() *config { return cmp.Or(c.Text, c.LLM, c) }

func (c *config) eos() []uint32 { return append(slices.Clone(c.EOS), c.text().EOS...) }

// window returns the context window in tokens, or 0 if it is not known. longest is the tokenizer's model_max_length. As
// in vLLM (_get_and_verify_max_len), the number of positions is multiplied by the factor of rope_scaling.
func (c *config) window(longest int64) int {
	t := c.text()
	n := 0.0
	for _, v := range []float64{t.Positions, t.NPositions, t.MaxSeqLen, t.SeqLength, t.MaxSequence} {
		if v >= 1 && (n == 0 || v < n) {
			n = v
		}
	}
	if r := t.Rope; r != nil && n > 0 && r.Factor > 1 {
		switch kind := cmp.Or(r.RopeType, r.Type); kind {
		case "yarn":
			n = max(n, cmp.Or(r.Original, n)*r.Factor)
		case "linear", "dynamic":
			n *= r.Factor
		}
	}
	if v := t.MaxLength; v >= 1 { // Command R: max_position_embeddings is too small
		n = v
	}
	if sane := 1 << 30; longest >= 1 && longest < int64(sane) && (n == 0 || float64(longest) < n) {
		n = float64(longest)
	}
	return int(min(n, math.MaxInt32))
}

// loadTemplate returns a directory's template, the family if it is a built-in format other than ChatML, and a
// description of its source. A nil template means ChatML with calls as the family's parser reads them.
func loadTemplate(fsys fs.FS, tok *tokenizers.Tokenizer, cfg *config) (t template.Template, family, source string, err error) {
	has := func(marks ...string) bool {
		for _, m := range marks {
			if _, ok := tok.TokenID(m); !ok {
				return false
			}
		}
		return true
	}
	now := &template.Options{Now: time.Now}
	if cfg.Type == "gpt_oss" || has("<|start|>", "<|channel|>", "<|message|>", "<|call|>") {
		// As the library prints it, which vLLM runs, and with calls as the model writes them: the next prompt then begins
		// with this one and its response.
		now.Variables = map[string]any{"style": "library", "sampled_calls": true}
		t, err = template.Lookup("harmony", now)
		return t, "harmony", "harmony", err
	}
	own, err := template.Load(fsys, now)
	switch {
	case err == nil:
		return own, "", "the model's own template", nil
	case !errors.Is(err, template.ErrNoTemplate):
		return nil, "", "", err
	case cfg.Type == "deepseek_v32":
		family, source = "deepseek_v3_2", "DeepSeek V3.2"
	case cfg.Type == "deepseek_v4":
		family, source = "deepseek_v4", "DeepSeek V4"
	case cfg.Type == "kimi_k3":
		family, source = "kimi_k3", "Kimi K3"
	case has("<|im_start|>", "<|im_end|>"):
		return nil, "", "ChatML", nil
	default:
		m, err := findMistral(fsys, has)
		if err != nil {
			return nil, "", "", err
		}
		if m != nil {
			t, err := template.Lookup("mistral", &template.Options{Variables: m.variables})
			return t, m.family, m.source, err
		}
		return nil, "", "ChatML as plain text: the directory has no template", nil
	}
	if strings.HasPrefix(family, "deepseek") {
		// The developer role of OpenAI's API gives instructions. DeepSeek's own is part of its search pipeline.
		now.Variables = map[string]any{"developer_is_system": true}
	}
	t, err = template.Lookup(family, now)
	return t, family, source, err
}
