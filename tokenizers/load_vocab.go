// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// This file reads the directories from which transformers' Python classes are loaded: a vocabulary without the rules by
// which it is used. The class has them, so it must be known. The vocabulary is made a tokenizer.json with these rules.

const (
	vocabFile  = "vocab.json"
	mergesFile = "merges.txt"
	wordsFile  = "vocab.txt"
)

// vocabClass contains the rules of a class of transformers 5.23.
type vocabClass struct {
	words         bool // vocab.txt, otherwise vocab.json and merges.txt
	normalizer    string
	preTokenizer  string
	decoder       string
	model         string            // fields of the model besides type, vocabulary and merges
	named         map[string]string // tokens by the names of their fields
	before, after string            // names of the tokens added before and after a text
	trims         bool              // offsets are trimmed
}

const (
	decodeBytes = `{"type":"ByteLevel"}`
	spaceFlag   = "ADD_PREFIX_SPACE" // in preTokenizer: the value of add_prefix_space
)

func gpt2Class(preTokenizer string) vocabClass {
	return vocabClass{
		normalizer: "null", preTokenizer: preTokenizer, decoder: decodeBytes,
		named: map[string]string{"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"},
	}
}

const byteLevelCut = `{"type":"ByteLevel","add_prefix_space":` + spaceFlag + `}`

// vocabClasses lists the classes by name, without Tokenizer and TokenizerFast. Source: AutoTokenizer of transformers
// 5.23 with a directory that has nothing but the vocabulary and the class.
var vocabClasses = func() map[string]vocabClass {
	gpt2 := gpt2Class(byteLevelCut)
	roberta := gpt2Class(byteLevelCut)
	roberta.named = map[string]string{
		"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>", "cls_token": "<s>", "mask_token": "<mask>",
	}
	roberta.before, roberta.after, roberta.trims = "cls_token", "sep_token", true
	qwen := gpt2Class(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"` + strings.ReplaceAll(cutQwen2, `\`, `\\`) +
		`"},"behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":` + spaceFlag + `,"use_regex":false}]}`)
	qwen.normalizer = `{"type":"NFC"}`
	qwen.named = map[string]string{"eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
	clip := gpt2Class(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"` + strings.ReplaceAll(cutCLIP, `\`, `\\`) +
		`"},"behavior":"Removed","invert":true},{"type":"ByteLevel","add_prefix_space":false}]}`)
	clip.normalizer = `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]}`
	clip.model = `,"end_of_word_suffix":"</w>","unk_token":UNK`
	clip.named = map[string]string{"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
	clip.before, clip.after = "bos_token", "eos_token"
	bert := vocabClass{
		words: true, preTokenizer: `{"type":"BertPreTokenizer"}`, decoder: `{"type":"WordPiece","prefix":"##","cleanup":true}`,
		model:  `,"unk_token":UNK`,
		named:  map[string]string{"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"},
		before: "cls_token", after: "sep_token",
	}
	all := map[string]vocabClass{"GPT2": gpt2, "Qwen2": qwen, "CLIP": clip, "CodeGen": gpt2}
	for _, name := range []string{"Roberta", "Bart", "Longformer", "LED", "Mvp"} {
		all[name] = roberta
	}
	for _, name := range []string{
		"Bert", "DistilBert", "Electra", "MobileBert", "ConvBert", "SqueezeBert", "Lxmert", "LayoutLM", "DPRQuestionEncoder", "DPRContextEncoder", "DPRReader",
	} {
		all[name] = bert
	}
	return all
}()

// vocabTypes lists the classes of the model types in config.json, for directories that do not name a class.
var vocabTypes = map[string]string{
	"gpt2": "GPT2", "gpt_neo": "GPT2", "gptj": "GPT2", "codegen": "GPT2", "phi": "GPT2", "starcoder2": "GPT2", "roberta": "Roberta", "bart": "Roberta",
	"longformer": "Roberta", "qwen2": "Qwen2", "qwen2_moe": "Qwen2", "qwen2_vl": "Qwen2", "qwen3": "Qwen2", "qwen3_moe": "Qwen2", "clip": "CLIP",
	"bert": "Bert", "distilbert": "Bert", "electra": "Bert",
}

// vocabSettings contains the settings of tokenizer_config.json that concern these classes.
type vocabSettings struct {
	Class       string `json:"tokenizer_class"`
	PrefixSpace bool   `json:"add_prefix_space"`
	AddBOS      bool   `json:"add_bos_token"`
	AddEOS      bool   `json:"add_eos_token"`

	Lowercase *bool `json:"do_lower_case"`
	Chinese   *bool `json:"tokenize_chinese_chars"`
	Accents   *bool `json:"strip_accents"`
	Basic     *bool `json:"do_basic_tokenize"`
	NeverAny  []any `json:"never_split"`
}

// loadVocab reads vocab.json and merges.txt, or vocab.txt; data is the content of the file called name.
func loadVocab(fsys fs.FS, name string, data []byte) (*Tokenizer, error) {
	refuse := func(file, field, format string, args ...any) (*Tokenizer, error) {
		return nil, &Error{file: file, field: field, Offset: -1, reason: clip(fmt.Sprintf(format, args...)), err: ErrUnsupported}
	}
	var set vocabSettings
	if err := readJSON(fsys, configFile, &set); err != nil {
		return nil, err
	}
	class := strings.TrimSuffix(strings.TrimSuffix(set.Class, "Fast"), "Tokenizer")
	source, field, named := configFile, "tokenizer_class", set.Class
	if class == "" {
		kind, err := modelType(fsys)
		if err != nil {
			return nil, err
		}
		source, field, named = "config.json", "model_type", kind
		if class = vocabTypes[kind]; class == "" {
			return refuse(name, "tokenizer_class", "the rules of this vocabulary: neither tokenizer_config.json names a known tokenizer_class nor config.json a known model_type (%q)", kind)
		}
	}
	c, ok := vocabClasses[class]
	if !ok || c.words != (name == wordsFile) {
		return refuse(source, field, "%q with %s; convert the model to tokenizer.json", named, name)
	}
	if c.words && (set.Basic != nil && !*set.Basic || len(set.NeverAny) > 0) {
		return refuse(configFile, "do_basic_tokenize", "a Bert tokenizer without basic tokenization or with never_split")
	}
	d, err := readDeclared(fsys)
	if err != nil {
		return nil, err
	}
	if d.added == nil {
		if d.added, err = readAddedTokens(fsys); err != nil {
			return nil, err
		}
	}
	token := d.defaults(c.named)
	file, err := c.assemble(fsys, name, data, set, token["unk_token"])
	if err != nil {
		return nil, err
	}
	t, err := parse(file)
	if err != nil {
		return nil, inVocab(name, err)
	}
	if err := t.mergeDeclared(d); err != nil {
		return nil, err
	}
	for _, a := range d.added {
		if id, _ := t.TokenID(a.Content); id != a.ID && a.Content != "" {
			return nil, &Error{file: configFile, field: "added_tokens_decoder", Offset: -1, reason: fmt.Sprintf("%.100q has the id %d, not %d", a.Content, id, a.ID), err: ErrFormat}
		}
	}
	if class == "GPT2" {
		if set.AddBOS {
			c.before = "bos_token"
		}
		if set.AddEOS {
			c.after = "eos_token"
		}
	}
	for _, x := range []struct {
		name string
		to   *[]uint32
	}{{c.before, &t.before}, {c.after, &t.after}} {
		if x.name == "" {
			continue
		}
		id, ok := t.TokenID(token[x.name])
		if !ok {
			return nil, &Error{file: name, field: x.name, Offset: -1, reason: fmt.Sprintf("no token %.100q", token[x.name]), err: ErrFormat}
		}
		*x.to = append(*x.to, id)
	}
	if c.trims {
		t.trims = []trimming{{prefix: set.PrefixSpace}}
	}
	for _, x := range []struct {
		to   *string
		name string
	}{{&t.config.bos, "bos_token"}, {&t.config.eos, "eos_token"}, {&t.config.pad, "pad_token"}} {
		*x.to = token[x.name]
	}
	return t, nil
}

// inVocab names the file of a part of an assembled tokenizer.json.
func inVocab(name string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Offset = -1
		e.file = name
		switch rest := strings.TrimPrefix(e.field, "model."); {
		case strings.HasPrefix(rest, "merges"):
			e.file, e.field = mergesFile, rest
		case strings.HasPrefix(rest, "vocab"):
			e.field = rest
		}
	}
	return err
}

// assemble returns a tokenizer.json.
func (c *vocabClass) assemble(fsys fs.FS, name string, data []byte, set vocabSettings, unk string) ([]byte, error) {
	var b bytes.Buffer
	quote := func(s string) string {
		q, _ := json.Marshal(s) // of a string it never fails
		return string(q)
	}
	b.Grow(len(data) + len(data)/2)
	normalizer := c.normalizer
	if c.words {
		flag := func(p *bool, none string) string {
			if p == nil {
				return none
			}
			return fmt.Sprint(*p)
		}
		normalizer = fmt.Sprintf(`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":%s,"strip_accents":%s,"lowercase":%s}`,
			flag(set.Chinese, "true"), flag(set.Accents, "null"), flag(set.Lowercase, "true"))
	}
	fmt.Fprintf(&b, `{"normalizer":%s,"pre_tokenizer":%s,"decoder":%s,"model":{"type":`, normalizer,
		strings.ReplaceAll(c.preTokenizer, spaceFlag, fmt.Sprint(set.PrefixSpace)), c.decoder)
	if c.words {
		b.WriteString(`"WordPiece"`)
	} else {
		b.WriteString(`"BPE"`)
	}
	b.WriteString(strings.ReplaceAll(c.model, "UNK", quote(unk)))
	b.WriteString(`,"vocab":`)
	if !c.words {
		r := jsonr.New(jsonr.Span{Data: data}, "")
		r.Skip()
		if err := r.End(); err != nil {
			return nil, inFile(name, malformed(err))
		}
		b.Write(data)
		return c.addMerges(fsys, &b)
	}
	b.WriteByte('{')
	id := 0
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
		if !utf8.Valid(line) {
			return nil, &Error{file: name, field: fmt.Sprintf("line %d", id+1), Offset: -1, reason: "is not UTF-8", err: ErrFormat}
		}
		if id > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%d", quote(string(line)), id)
		id++
	}
	b.WriteString("}}}")
	return b.Bytes(), nil
}

// addMerges appends merges.txt.
func (c *vocabClass) addMerges(fsys fs.FS, b *bytes.Buffer) ([]byte, error) {
	data, err := readFile(fsys, mergesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFile(fsys, mergesFile)
	}
	if err != nil {
		return nil, err
	}
	b.WriteString(`,"merges":[`)
	first, n := true, 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 || n == 1 && bytes.HasPrefix(line, []byte("#version")) {
			continue
		}
		if !utf8.Valid(line) {
			return nil, &Error{file: mergesFile, field: fmt.Sprintf("line %d", n), Offset: -1, reason: "is not UTF-8", err: ErrFormat}
		}
		left, right, ok := bytes.Cut(line, []byte{' '})
		if !ok || len(left) == 0 || len(right) == 0 || bytes.IndexByte(right, ' ') >= 0 {
			return nil, &Error{file: mergesFile, field: fmt.Sprintf("line %d", n), Offset: -1, reason: "is not two tokens with a space between", err: ErrFormat}
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		pair, _ := json.Marshal([2]string{string(left), string(right)})
		b.Write(pair)
	}
	b.WriteString("]}}")
	return b.Bytes(), nil
}

// defaults adds the tokens that the class has for names that the file does not specify, and returns all of them.
func (d *declared) defaults(class map[string]string) map[string]string {
	token := maps.Clone(class)
	for name, a := range d.byName {
		token[name] = a.Content
	}
	var named []AddedToken
	for _, name := range namedTokens {
		if a, ok := d.byName[name]; ok {
			named = append(named, a)
		} else if s := class[name]; s != "" {
			named = append(named, AddedToken{Content: s, Special: true})
		}
	}
	d.named = slices.Concat(named, d.named[len(d.byName):])
	return token
}
