// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-go/weft/tokenizers/internal/folder"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// Options configures [Load]. Most fields are for rank files, which do not contain this information.
type Options struct {
	// File is the file to read. If empty, it is the first file found; see [Load]. The format depends on the name: vocab.json
	// and vocab.txt; tekken*.json; any other .json is a tokenizer.json; a name with .model is a SentencePiece model, unless its content
	// is that of a rank file; everything else is a rank file.
	File string
	// Family is the vocabulary of a rank file: o200k_harmony (gpt-oss), o200k_base, cl100k_base, p50k_base, p50k_edit,
	// r50k_base, gpt2, kimi_k2, glm4 or llama3. It determines the fields below that are empty. If Family and Pattern are
	// empty, the name of the file, such as cl100k_base.tiktoken, or config.json or tokenizer_config.json in the same
	// directory must specify the family.
	Family string
	// Pattern is the regular expression that splits texts, as tiktoken's pat_str: in the syntax of Rust's crate
	// fancy-regex. As in tiktoken, text that it does not match is dropped.
	Pattern string
	// Added contains the special tokens of a rank file with their IDs. For kimi_k2, glm4 and llama3 these differ by
	// release, and the default is the added_tokens_decoder of tokenizer_config.json.
	Added []AddedToken
	// Tokens is the number of ranks that a rank file must have, which detects one that was truncated between two lines.
	// 0 means any number, or the family's.
	Tokens int
	// BOS is the token in Added that AppendEncodeSpecial adds before a text, if any.
	BOS string
}

// Load reads a tokenizer from the root of fsys, such as os.DirFS("models/Qwen3-8B"). It uses the first of these:
//
//   - tokenizer.json, with the additional added tokens of tokenizer_config.json;
//   - a tiktoken rank file (tiktoken.model, *.tiktoken or tokenizer.model), whose IDs are ranks;
//   - Mistral's tekken.json;
//   - a SentencePiece model (tokenizer.model, tokenizer.model.v3; of T5 also spiece.model);
//   - vocab.json and merges.txt, or vocab.txt, with the rules of the class that tokenizer_config.json names: GPT2, CodeGen,
//     Roberta, Bart, Longformer, LED, Mvp, Qwen2, CLIP, Bert and those that tokenize like Bert.
//
// Settings are read from tokenizer_config.json and generation_config.json, if present, for [Tokenizer.NamedToken] and
// [Tokenizer.EOS].
//
// A rank file yields the same IDs and text as a tokenizer.json converted from it. Special tokens of a tekken.json are
// recognized in trusted text, although mistral-common never does that; as in its decoder, all of them are special,
// regardless of is_control.
//
// A SentencePiece model yields the IDs, text and offsets of the SentencePiece library (0.2.3). Its control pieces, and
// tokens that tokenizer_config.json or added_tokens.json declare, are recognized in trusted text, which the library does
// not do; each part between them is encoded as a text of its own. Decoding with skipSpecial is the library's.
// Bytes that are not UTF-8 become U+FFFD. If the class in tokenizer_config.json uses other IDs than the model, or changes
// texts before, the directory is refused.
//
// If no file is found or the directory does not exist, the error is a [*DirError], otherwise an [*Error]. Both name the
// directory. Files are limited to 256 MiB, rank files to 64 MiB. A tokenizer of 150,000 tokens takes about a tenth of a
// second.
func Load(fsys fs.FS, options *Options) (*Tokenizer, error) {
	var opt Options
	if options != nil {
		opt = *options
	}
	t, err := loadModel(fsys, opt)
	if err == nil {
		err = t.readConfig(fsys)
	}
	if err != nil {
		return nil, inDir(fsys, err)
	}
	return t, nil
}

// inDir adds the path of the directory to an error.
func inDir(fsys fs.FS, err error) error {
	dir := folder.Path(fsys)
	if e, ok := errors.AsType[*Error](err); ok {
		e.dir = dir
	}
	if e, ok := errors.AsType[*DirError](err); ok {
		e.dir, e.by = dir, "tokenizers: "
	}
	return err
}

// maxFile is the largest file that is read, in bytes.
const maxFile = 256 << 20

const tokenizerFile = "tokenizer.json"

// loadModel reads the first file found.
func loadModel(fsys fs.FS, opt Options) (*Tokenizer, error) {
	names := []string{opt.File}
	if opt.File == "" {
		var err error
		if names, err = candidates(fsys, opt); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		data, err := readFile(fsys, name)
		switch base := path.Base(name); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case path.Ext(base) == ".json" && strings.HasPrefix(base, "tekken"):
			return loadTekken(data, base)
		case base == vocabFile || base == wordsFile:
			return loadVocab(fsys, base, data)
		case path.Ext(base) == ".json":
			t, err := parse(data)
			if err != nil {
				return nil, inFile(base, err)
			}
			return t, t.mergeConfig(fsys)
		case strings.Contains(base, ".model") && looksPieces(data):
			return loadPieces(fsys, name, data, opt.File == "")
		default:
			return loadRanks(fsys, base, data, opt)
		}
	}
	missing := opt.File
	if missing == "" {
		missing = "tokenizer.json (or tokenizer.model, tiktoken.model, tekken.json, vocab.json, vocab.txt)"
	}
	return nil, missingFile(fsys, missing)
}

func missingFile(fsys fs.FS, name string) error {
	found, err := folder.Names(fsys)
	if err == nil {
		err = fs.ErrNotExist
	}
	return &DirError{Missing: name, Found: found, Err: err}
}

// candidates returns the possible file names, in order.
func candidates(fsys fs.FS, opt Options) ([]string, error) {
	var names []string
	ranks := opt.Family != "" || opt.Pattern != ""
	if !ranks {
		names = append(names, tokenizerFile)
		if _, err := fs.Stat(fsys, tokenizerFile); err == nil {
			return names, nil
		}
	}
	names = append(names, tiktokenFile)
	if more, err := fs.Glob(fsys, "*.tiktoken"); err == nil {
		if len(more) > 1 {
			return nil, &Error{file: more[1], Offset: -1, reason: "one of several rank files", err: ErrUnsupported}
		}
		names = append(names, more...)
	}
	if !ranks {
		names = append(names, tekkenFile)
	}
	names = append(names, pieceFile)
	if more, err := fs.Glob(fsys, pieceFile+".v*"); err == nil && len(more) == 1 {
		names = append(names, more[0])
	}
	if !ranks {
		names = append(names, "spiece.model", "sentencepiece.bpe.model", vocabFile, wordsFile)
	}
	return names, nil
}

// readFile reads a file of at most maxFile bytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &Error{file: name, Offset: -1, reason: err.Error(), err: err}
	}
	f, err := fsys.Open(name)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	var size int64
	if st, err := f.Stat(); err == nil {
		size = st.Size()
	}
	if size > maxFile {
		return nil, &Error{file: name, Offset: -1, reason: fmt.Sprintf("%d bytes, the limit is %d", size, maxFile), err: ErrLimit}
	}
	buf := make([]byte, size)
	n, err := io.ReadFull(f, buf)
	if err == nil && n == int(size) {
		// The size may be wrong or unknown, so read up to the end.
		rest, err := io.ReadAll(io.LimitReader(f, maxFile-size+1))
		if err != nil {
			return fail(err)
		}
		buf = append(buf, rest...)
		if len(buf) > maxFile {
			return nil, &Error{file: name, Offset: -1, reason: fmt.Sprintf("more than %d bytes", maxFile), err: ErrLimit}
		}
		return buf, nil
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fail(err)
	}
	return buf[:n], nil
}

// parse builds a tokenizer from the content of tokenizer.json.
func parse(data []byte) (*Tokenizer, error) {
	parts := make(map[string]jsonr.Span)
	r := jsonr.New(jsonr.Span{Data: data}, "")
	var key []byte
	for r.Object(); r.Key(&key); {
		k := string(key)
		switch k {
		case "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model":
		default:
			r.Fail("is not known")
			return nil, unsupported(r.Err())
		}
		if _, twice := parts[k]; twice {
			r.Fail("appears twice")
		}
		parts[k] = r.Raw()
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	if s, ok := parts["version"]; ok && string(s.Data) != `"1.0"` {
		return nil, &Error{file: tokenizerFile, field: "version", Offset: s.Offset, reason: fmt.Sprintf("only \"1.0\", not %.20s", s.Data), err: ErrUnsupported}
	}
	t := &Tokenizer{unk: -1}
	// Cheap parts first, because most refused files are refused here.
	for _, p := range []struct {
		name string
		read func(jsonr.Span) error
	}{
		{"truncation", t.readTruncation},
		{"padding", t.readPadding},
		{"normalizer", t.readNormalizer},
		{"pre_tokenizer", t.readPreTokenizer},
		{"decoder", t.readDecoder},
		{"model", t.readModel},
		{"added_tokens", t.readAdded},
		{"post_processor", t.readPostProcessor},
	} {
		s, ok := parts[p.name]
		if !ok {
			if p.name == "model" {
				return nil, &Error{file: tokenizerFile, field: "model", Offset: -1, reason: "is missing", err: ErrFormat}
			}
			s = jsonr.Span{Data: []byte("null")}
		}
		if err := p.read(s); err != nil {
			return nil, err
		}
	}
	if err := t.checkTruncation(parts["truncation"]); err != nil {
		return nil, err
	}
	if err := t.buildDecoder(); err != nil {
		return nil, err
	}
	t.splitter = sync.OnceValues(t.newSplitter)
	t.pool.slots = make([]atomic.Pointer[scratch], max(1, runtime.GOMAXPROCS(0)))
	return t, nil
}

// unsupported and malformed convert an error of the JSON reader to an *Error.
func unsupported(err error) error { return wrap(err, ErrUnsupported) }
func malformed(err error) error   { return wrap(err, ErrFormat) }

func wrap(err, kind error) error {
	if e, ok := errors.AsType[*jsonr.Error](err); ok {
		return &Error{file: tokenizerFile, field: e.Path, Offset: e.Offset, reason: clip(e.Reason), err: kind}
	}
	return err
}
