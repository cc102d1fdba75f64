// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 256 << 20

const tokenizerFile = "tokenizer.json"

// Load reads the tokenizer in directory dir. See [LoadFS].
func Load(dir string) (*Tokenizer, error) { return LoadFS(os.DirFS(dir)) }

// LoadFS reads a tokenizer and what is said about it in the root of fsys:
//
//   - tokenizer.json, with the added tokens that tokenizer_config.json declares beyond it; or else
//   - tiktoken.model, *.tiktoken or a rank file called tokenizer.model, if config.json or tokenizer_config.json tell
//     the family; or tekken.json;
//   - what is there of tokenizer_config.json, generation_config.json and chat_template.jinja, for [Config].
//
// Errors are [*Error]. A tokenizer of 150,000 tokens takes in the order of a tenth of a second.
func LoadFS(fsys fs.FS) (*Tokenizer, error) {
	t, err := loadModel(fsys)
	if err != nil {
		return nil, err
	}
	if err := t.readConfig(fsys); err != nil {
		return nil, err
	}
	return t, nil
}

func loadModel(fsys fs.FS) (*Tokenizer, error) {
	data, err := readFile(fsys, tokenizerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return loadOther(fsys, err)
	}
	if err != nil {
		return nil, err
	}
	t, err := parse(data)
	if err != nil {
		return nil, err
	}
	return t, t.mergeConfig(fsys)
}

// readFile reads a file of at most MaxFile bytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &Error{File: name, Offset: -1, Reason: err.Error(), Err: err}
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
	if size > MaxFile {
		return nil, &Error{File: name, Offset: -1, Reason: fmt.Sprintf("%d bytes, the limit is %d", size, MaxFile), Err: ErrLimit}
	}
	buf := make([]byte, size)
	n, err := io.ReadFull(f, buf)
	if err == nil && n == int(size) {
		// The size may be wrong or unknown: take what follows as well.
		rest, err := io.ReadAll(io.LimitReader(f, MaxFile-size+1))
		if err != nil {
			return fail(err)
		}
		buf = append(buf, rest...)
		if len(buf) > MaxFile {
			return nil, &Error{File: name, Offset: -1, Reason: fmt.Sprintf("more than %d bytes", MaxFile), Err: ErrLimit}
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
		return nil, &Error{File: tokenizerFile, Place: "version", Offset: s.Offset, Reason: fmt.Sprintf("only \"1.0\", not %.20s", s.Data), Err: ErrUnsupported}
	}
	t := &Tokenizer{unk: -1}
	// The cheap parts first: most files that are refused are refused here.
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
				return nil, &Error{File: tokenizerFile, Place: "model", Offset: -1, Reason: "is missing", Err: ErrFormat}
			}
			s = jsonr.Span{Data: []byte("null")}
		}
		if err := p.read(s); err != nil {
			return nil, err
		}
	}
	if err := t.buildDecoder(); err != nil {
		return nil, err
	}
	t.pool.slots = make([]atomic.Pointer[scratch], max(1, runtime.GOMAXPROCS(0)))
	return t, nil
}

// unsupported and malformed turn an error of the JSON reader into an *Error.
func unsupported(err error) error { return wrap(err, ErrUnsupported) }
func malformed(err error) error   { return wrap(err, ErrFormat) }

func wrap(err, kind error) error {
	if e, ok := errors.AsType[*jsonr.Error](err); ok {
		return &Error{File: tokenizerFile, Place: e.Path, Offset: e.Offset, Reason: clip(e.Reason), Err: kind}
	}
	return err
}
