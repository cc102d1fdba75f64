// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/tiktoken"
)

// TiktokenOptions say what a rank file leaves open.
type TiktokenOptions struct {
	// Family names a known vocabulary: o200k_harmony (gpt-oss), o200k_base, cl100k_base, kimi_k2, glm4 or llama3.
	// It sets what the fields below leave empty.
	Family string
	// Pattern is the cutting rule, a regular expression as it stands in the family's Python code.
	Pattern string
	// Added are the special tokens with their ids. Those of kimi_k2, glm4 and llama3 differ by release, so
	// they must be given (models have them in the added_tokens_decoder of tokenizer_config.json).
	Added []AddedToken
	// Tokens is how many ranks the file must hold, which shows a file that was cut between two lines. 0 means any
	// number, or the family's.
	Tokens int
	// BOS is the spelling of the token in Added that a framed encoding begins with, if any.
	BOS string
	// File is the name in errors. Empty means tiktoken.model.
	File string
}

// rankFamily is a vocabulary published as a rank file.
type rankFamily struct {
	name    string
	pattern string
	ranks   int      // in its file, 0 if that differs by release
	models  []string // values of model_type in config.json
	files   []string // names under which only this vocabulary is published
	added   func() []AddedToken
	fill    string // the format of the spelling of reserved ids, %d is the id
	filled  int    // ids after the ranks that are filled
	bos     string
}

// The patterns as they are published.
const (
	cutContractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	cutLlama3       = cutContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cutCL100K       = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	cutO200K        = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + cutContractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + cutContractions + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cutKimi = `[\p{Han}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+` + cutContractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*` + cutContractions + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// rankFamilies is the table of what is known. Sources: tiktoken 0.12, tiktoken_ext/openai_public.py (o200k_*, cl100k_base);
// tokenization_kimi.py of Kimi K2 and Kimi Linear, and Dynamo's lib/tokenizers/src/tiktoken.rs for its model types and
// the 256 ids it fills; tokenization_chatglm.py of GLM-4; llama3/tokenizer.py of llama-models.
//
// Not taken over: Kimi's Python code cuts texts at 400,000 characters, and runs of more than 25,000 characters with or
// without white space, before it encodes the parts. Here, as with its tokenizer.json, nothing is cut.
var rankFamilies = []rankFamily{
	{name: "o200k_harmony", pattern: cutO200K, ranks: 199998, models: []string{"gpt_oss"}, added: harmonyTokens},
	{name: "o200k_base", pattern: cutO200K, ranks: 199998, files: []string{"o200k_base.tiktoken"}, added: func() []AddedToken {
		return []AddedToken{specialToken(199999, "<|endoftext|>"), specialToken(200018, "<|endofprompt|>")}
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

// LoadTiktoken reads a tiktoken rank file of at most [tiktoken.MaxFile] bytes; opt says what else it takes. Ids are
// ranks. Errors are [*Error], with the line as the place. It takes about a tenth of a second for 200,000 tokens.
//
// Ids and decoded text are those of a tokenizer.json converted from the same file. LoadFS calls this for a folder
// with tiktoken.model.
func LoadTiktoken(r io.Reader, opt *TiktokenOptions) (*Tokenizer, error) {
	if opt == nil {
		opt = &TiktokenOptions{}
	}
	file := cmp.Or(opt.File, tiktokenFile)
	data, err := readAll(r, file, tiktoken.MaxFile)
	if err != nil {
		return nil, err
	}
	return loadTiktoken(data, file, *opt)
}

const tiktokenFile = "tiktoken.model"

func loadTiktoken(data []byte, file string, opt TiktokenOptions) (*Tokenizer, error) {
	refuse := func(place, format string, args ...any) (*Tokenizer, error) {
		return nil, &Error{File: file, Place: place, Offset: -1, Reason: fmt.Sprintf(format, args...), Err: ErrUnsupported}
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
		return nil, &Error{File: file, Place: fmt.Sprintf("line %d", e.Line), Offset: e.Offset, Reason: e.Reason, Err: kind}
	}
	m.vocab = v
	if n := cmp.Or(opt.Tokens, f.ranks); n > 0 && v.Count() != n {
		return nil, &Error{
			File: file, Place: fmt.Sprintf("line %d", bytes.Count(data, []byte{'\n'})), Offset: int64(len(data)),
			Reason: fmt.Sprintf("ends with %d tokens, not %d", v.Count(), n), Err: ErrFormat,
		}
	}
	if f.filled > 0 {
		m.fill(f)
	}
	if bos := cmp.Or(opt.BOS, f.bos); bos != "" {
		i := slices.IndexFunc(m.added, func(a AddedToken) bool { return a.Content == bos })
		if i < 0 {
			return nil, &Error{File: file, Place: "special tokens", Offset: -1, Reason: fmt.Sprintf("no %.100q among them", bos), Err: ErrFormat}
		}
		m.before = []uint32{m.added[i].ID}
	}
	return m.build()
}

// fill gives the ids after the ranks that have no special token the family's reserved one.
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

// loadOther reads a folder without tokenizer.json: tiktoken.model, one *.tiktoken, tekken.json, or a tokenizer.model
// that is a rank file, in this order, and the files beside it. missing is what is returned when there is none of
// them.
func loadOther(fsys fs.FS, missing error) (*Tokenizer, error) {
	t, err := findOther(fsys, missing)
	if err != nil {
		return nil, err
	}
	own := t.config
	if err := t.readConfig(fsys); err != nil {
		return nil, err
	}
	c := &t.config
	c.BOS, c.EOSToken, c.Pad = cmp.Or(c.BOS, own.BOS), cmp.Or(c.EOSToken, own.EOSToken), cmp.Or(c.Pad, own.Pad)
	if len(c.EOS) == 0 {
		c.EOS = own.EOS
	}
	return t, nil
}

func findOther(fsys fs.FS, missing error) (*Tokenizer, error) {
	names := []string{tiktokenFile}
	if more, err := fs.Glob(fsys, "*.tiktoken"); err == nil {
		if len(more) > 1 {
			return nil, &Error{File: more[1], Offset: -1, Reason: "one of several rank files", Err: ErrUnsupported}
		}
		names = append(names, more...)
	}
	for _, name := range append(names, tekkenFile, "tokenizer.model") {
		data, err := readFile(fsys, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case name == tekkenFile:
			return loadTekken(data)
		case name == "tokenizer.model" && !looksRanked(data):
			continue // SentencePiece
		}
		return loadFolder(fsys, name, data)
	}
	return nil, missing
}

// looksRanked tells a rank file from the SentencePiece models that share its name.
func looksRanked(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	_, err := tiktoken.Parse(line)
	return err == nil
}

// loadFolder reads the rank file name with what the files beside it say of its family and special tokens.
func loadFolder(fsys fs.FS, name string, data []byte) (*Tokenizer, error) {
	opt := TiktokenOptions{}
	kind, err := modelType(fsys)
	if err != nil {
		return nil, err
	}
	d, err := readDeclared(fsys)
	if err != nil {
		return nil, err
	}
	for _, f := range rankFamilies {
		if slices.Contains(f.files, path.Base(name)) || slices.Contains(f.models, kind) || kind == "" && f.name == "kimi_k2" && d.kimi {
			opt.Family = f.name
			break
		}
	}
	if opt.Family == "" {
		what := "its model_type is not given in config.json"
		if kind != "" {
			what = fmt.Sprintf("of model_type %.100q", kind)
		}
		return nil, &Error{File: name, Place: "family", Offset: -1, Reason: "a rank file of no known vocabulary, " + what, Err: ErrUnsupported}
	}
	opt.Added = d.added
	return loadTiktoken(data, name, opt)
}

// modelType returns model_type of config.json, "" if there is none.
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
