// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/tiktoken"
)

// rankFamily is a vocabulary published as a rank file.
type rankFamily struct {
	name    string
	pattern string
	ranks   int      // number of ranks in its file; 0 if it differs by release
	models  []string // values of model_type in config.json
	files   []string // file names used only for this vocabulary
	added   func() []AddedToken
	fill    string // format of the names of reserved ids; %d is the id
	filled  int    // number of ids after the ranks that are filled
	bos     string
}

// Published patterns.
const (
	cutContractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	cutLlama3       = cutContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cutQwen2        = cutContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cutCLIP         = `<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`
	cutR50K         = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
	cutCL100K       = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	cutO200K        = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + cutContractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + cutContractions + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cutKimi = `[\p{Han}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+` + cutContractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*` + cutContractions + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// rankFamilies lists the known families. Sources: tiktoken 0.14, tiktoken_ext/openai_public.py (those before kimi_k2);
// tokenization_kimi.py of Kimi K2 and Kimi Linear, and Dynamo's lib/tokenizers/src/tiktoken.rs for its model types and
// the 256 ids it fills; tokenization_chatglm.py of GLM-4; llama3/tokenizer.py of llama-models.
//
// Kimi's Python code cuts texts at 400,000 characters, and runs of more than 25,000 characters with or without white
// space, before it encodes the parts. This package, like Kimi's tokenizer.json, does not.
var rankFamilies = []rankFamily{
	{name: "o200k_harmony", pattern: cutO200K, ranks: 199998, models: []string{"gpt_oss"}, added: harmonyTokens},
	{name: "o200k_base", pattern: cutO200K, ranks: 199998, files: []string{"o200k_base.tiktoken"}, added: func() []AddedToken {
		return []AddedToken{specialToken(199999, "<|endoftext|>"), specialToken(200018, "<|endofprompt|>")}
	}},
	{name: "r50k_base", pattern: cutR50K, ranks: 50256, files: []string{"r50k_base.tiktoken"}, added: endOfText},
	{name: "gpt2", pattern: cutR50K, ranks: 50256, added: endOfText},
	{name: "p50k_base", pattern: cutR50K, ranks: 50280, files: []string{"p50k_base.tiktoken"}, added: endOfText},
	{name: "p50k_edit", pattern: cutR50K, ranks: 50280, added: func() []AddedToken {
		return append(endOfText(), specialToken(50281, "<|fim_prefix|>"), specialToken(50282, "<|fim_middle|>"), specialToken(50283, "<|fim_suffix|>"))
	}},
	{name: "cl100k_base", pattern: cutCL100K, ranks: 100256, files: []string{"cl100k_base.tiktoken"}, added: func() []AddedToken {
		return []AddedToken{
			specialToken(100257, "<|endoftext|>"), specialToken(100258, "<|fim_prefix|>"), specialToken(100259, "<|fim_middle|>"),
			specialToken(100260, "<|fim_suffix|>"), specialToken(100276, "<|endofprompt|>"),
		}
	}},
	{
		name: "kimi_k2", pattern: cutKimi, ranks: 163584, models: []string{"kimi", "kimi_k2", "kimi_k25", "kimi_linear", "kimi_vl", "deepseek_v3"},
		fill: "<|reserved_token_%d|>", filled: 256,
	},
	{name: "glm4", pattern: cutLlama3, models: []string{"chatglm", "glm", "glm4", "glm4_moe"}},
	{name: "llama3", pattern: cutLlama3, ranks: 128000, models: []string{"llama"}, bos: "<|begin_of_text|>"},
}

// endOfText returns the special token of r50k_base and p50k_base.
func endOfText() []AddedToken { return []AddedToken{specialToken(50256, "<|endoftext|>")} }

func specialToken(id uint32, content string) AddedToken {
	return AddedToken{ID: id, Content: content, Special: true}
}

// harmonyTokens returns the special tokens of o200k_harmony.
func harmonyTokens() []AddedToken {
	names := map[uint32]string{
		199998: "<|startoftext|>", 199999: "<|endoftext|>", 200002: "<|return|>", 200003: "<|constrain|>", 200005: "<|channel|>",
		200006: "<|start|>", 200007: "<|end|>", 200008: "<|message|>", 200012: "<|call|>", 200018: "<|endofprompt|>",
	}
	var out []AddedToken
	for id := uint32(199998); id < 201088; id++ {
		name, ok := names[id]
		if !ok {
			name = fmt.Sprintf("<|reserved_%d|>", id)
		}
		out = append(out, specialToken(id, name))
	}
	return out
}

const tiktokenFile = "tiktoken.model"

func loadTiktoken(data []byte, file string, opt Options) (*Tokenizer, error) {
	refuse := func(field, format string, args ...any) (*Tokenizer, error) {
		return nil, &Error{file: file, field: field, Offset: -1, reason: fmt.Sprintf(format, args...), err: ErrUnsupported}
	}
	var f rankFamily
	if opt.Family != "" {
		i := slices.IndexFunc(rankFamilies, func(f rankFamily) bool { return f.name == opt.Family })
		if i < 0 {
			return refuse("family", "the vocabulary %.100q", opt.Family)
		}
		f = rankFamilies[i]
	}
	m := ranked{file: file, pattern: cmp.Or(opt.Pattern, f.pattern), added: slices.Clone(opt.Added)}
	if m.pattern == "" {
		return refuse("pattern", "neither a family nor a pattern is given")
	}
	switch {
	case len(m.added) > 0 || f.name == "":
	case f.added != nil:
		m.added = f.added()
	default:
		return refuse("special tokens", "those of %s differ by release and are not given", f.name)
	}
	v, err := tiktoken.Parse(data)
	if e, ok := errors.AsType[*tiktoken.Error](err); ok {
		kind := ErrFormat
		if e.Err == tiktoken.ErrLimit {
			kind = ErrLimit
		}
		return nil, &Error{file: file, field: fmt.Sprintf("line %d", e.Line), Offset: e.Offset, reason: e.Reason, err: kind}
	}
	m.vocab = v
	if n := cmp.Or(opt.Tokens, f.ranks); n > 0 && v.Count() != n {
		return nil, &Error{
			file: file, field: fmt.Sprintf("line %d", bytes.Count(data, []byte{'\n'})), Offset: int64(len(data)),
			reason: fmt.Sprintf("ends with %d tokens, not %d", v.Count(), n), err: ErrFormat,
		}
	}
	if f.filled > 0 {
		m.fill(f)
	}
	if bos := cmp.Or(opt.BOS, f.bos); bos != "" {
		i := slices.IndexFunc(m.added, func(a AddedToken) bool { return a.Content == bos })
		if i < 0 {
			return nil, &Error{file: file, field: "special tokens", Offset: -1, reason: fmt.Sprintf("no %.100q among them", bos), err: ErrFormat}
		}
		m.before = []uint32{m.added[i].ID}
	}
	return m.build()
}

// fill adds the family's reserved tokens for ids after the ranks that have no special token.
func (m *ranked) fill(f rankFamily) {
	used := make(map[uint32]bool, len(m.added))
	for _, a := range m.added {
		used[a.ID] = true
	}
	first := uint32(m.vocab.Len())
	for id := first; id < first+uint32(f.filled); id++ {
		if !used[id] {
			m.added = append(m.added, specialToken(id, fmt.Sprintf(f.fill, id)))
		}
	}
}

// loadRanks reads a rank file. Settings that opt does not specify are read from the files next to it.
func loadRanks(fsys fs.FS, name string, data []byte, opt Options) (*Tokenizer, error) {
	if len(data) > tiktoken.MaxFile {
		return nil, &Error{file: name, Offset: -1, reason: fmt.Sprintf("%d bytes, the limit is %d", len(data), tiktoken.MaxFile), err: ErrLimit}
	}
	d, err := readDeclared(fsys)
	if err != nil {
		return nil, err
	}
	if opt.Family == "" && opt.Pattern == "" {
		kind, err := modelType(fsys)
		if err != nil {
			return nil, err
		}
		for _, f := range rankFamilies {
			if slices.Contains(f.files, name) || slices.Contains(f.models, kind) || kind == "" && f.name == "kimi_k2" && d.kimi {
				opt.Family = f.name
				break
			}
		}
		if opt.Family == "" {
			what := "config.json has no model_type"
			if kind != "" {
				what = fmt.Sprintf("model_type %.100q", kind)
			}
			return nil, &Error{file: name, field: "family", Offset: -1, reason: "unknown vocabulary: " + what + "; set tokenizers.Options.Family or Pattern", err: ErrUnsupported}
		}
	}
	if len(opt.Added) == 0 {
		opt.Added = d.added
	}
	return loadTiktoken(data, name, opt)
}

// modelType returns model_type of config.json, or "" if absent.
func modelType(fsys fs.FS) (string, error) {
	const name = "config.json"
	data, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var kind, key []byte
	r := jsonr.New(jsonr.Span{Data: data}, "")
	for r.Object(); r.Key(&key); {
		if string(key) == "model_type" && r.Peek() == '"' {
			kind = r.String(kind[:0])
		} else {
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return "", inFile(name, malformed(err))
	}
	return strings.Clone(string(kind)), nil
}
