// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/spm"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

const pieceFile = "tokenizer.model"

// looksPieces reports whether data begins like a SentencePiece model: with a piece.
func looksPieces(data []byte) bool { return len(data) > 2 && data[0] == 0x0A }

// parsePieces builds a tokenizer from a SentencePiece model, without the tokens that other files declare. Control pieces
// are special added tokens; the others are matched in any text or not at all, as in SentencePiece.
func parsePieces(data []byte, file string) (*Tokenizer, error) {
	m, err := spm.Parse(data)
	if e, ok := errors.AsType[*spm.Error](err); ok {
		kind := ErrFormat
		switch e.Err {
		case spm.ErrLimit:
			kind = ErrLimit
		case spm.ErrUnsupported:
			kind = ErrUnsupported
		}
		return nil, &Error{file: file, field: e.Field, Offset: e.Offset, reason: clip(e.Reason), err: kind}
	}
	t := &Tokenizer{
		vocab:  m.Table(),
		norm:   []normal.Step{m.Normalizer()},
		mapped: -1,
		unk:    int64(m.Unk()),
		spell:  spelling{ids: map[string]uint32{}, text: map[uint32]string{}},
		dec:    decoder{pieces: m, denormal: m.Denormalizer(), fallback: m.ByteFallback()},
	}
	t.model = pieceWords{words[spm.State]{m, t.vocab, func(sc *scratch) *spm.State { return &sc.pieces }}}
	for id := range uint32(t.vocab.Len()) {
		if m.Type(id) == spm.Control {
			t.added = append(t.added, AddedToken{ID: id, Content: string(t.vocab.Bytes(id)), Special: true})
		}
	}
	t.config.bos, t.config.eos, t.config.pad = m.Named()
	return t, nil
}

// pieceWords is a SentencePiece model.
type pieceWords struct{ words[spm.State] }

// indexPieces completes a tokenizer of SentencePiece after its added tokens are known.
func (t *Tokenizer) indexPieces(file string) error {
	t.addedAt, t.idAt = map[string]int32{}, map[uint32]int32{}
	if err := t.indexAdded(part{path: "pieces", span: jsonr.Span{Offset: -1}}); err != nil {
		return inFile(file, err)
	}
	if err := t.buildDecoder(); err != nil {
		return inFile(file, err)
	}
	t.splitter = sync.OnceValues(t.newSplitter)
	t.pool.slots = make([]atomic.Pointer[scratch], max(1, runtime.GOMAXPROCS(0)))
	return nil
}

// pieceClasses lists the classes of transformers whose IDs or texts are not those of the model file, with the reason.
var pieceClasses = map[string]string{
	"XLMRoberta": offsetIDs, "MBart": offsetIDs, "MBart50": offsetIDs, "Nllb": offsetIDs, "Camembert": offsetIDs, "Barthez": offsetIDs,
	"Pegasus": offsetIDs, "XGLM": offsetIDs, "PLBart": offsetIDs, "XLMProphetNet": offsetIDs, "SeamlessM4T": offsetIDs, "Bartpho": offsetIDs, "Marian": ownVocabulary, "M2M100": ownVocabulary, "Speech2Text": ownVocabulary,
	"ErnieM": ownVocabulary, "XLNet": ownText, "Albert": ownText, "Cpm": ownText, "FNet": ownText, "RemBert": ownText, "GPTSw3": ownText,
	"BertJapanese": ownText, "LayoutXLM": offsetIDs,
}

const (
	offsetIDs     = "its ids differ from those of the SentencePiece model"
	ownVocabulary = "its ids are those of another vocabulary file"
	ownText       = "its Python code changes texts before it encodes them"
)

// pieceSettings contains the settings of tokenizer_config.json that concern SentencePiece models.
type pieceSettings struct {
	Class    string `json:"tokenizer_class"`
	AddBOS   *bool  `json:"add_bos_token"`
	AddEOS   *bool  `json:"add_eos_token"`
	ExtraIDs *int   `json:"extra_ids"`
}

// loadPieces reads a SentencePiece model and the settings next to it. inferred specifies that the caller did not name the
// file.
func loadPieces(fsys fs.FS, name string, data []byte, inferred bool) (*Tokenizer, error) {
	file := path.Base(name)
	t, err := parsePieces(data, file)
	if err != nil {
		return nil, err
	}
	var set pieceSettings
	if err := readJSON(fsys, configFile, &set); err != nil {
		return nil, err
	}
	class := strings.TrimSuffix(strings.TrimSuffix(set.Class, "Fast"), "Tokenizer")
	if class == "" {
		if kind, err := modelType(fsys); err != nil {
			return nil, err
		} else if kind == "t5" || kind == "mt5" {
			class = "T5"
		}
	}
	if inferred && !strings.HasPrefix(file, pieceFile) && class != "T5" && pieceClasses[class] == "" {
		return nil, &Error{file: file, field: "tokenizer_class", Offset: -1, reason: fmt.Sprintf("%q: unknown which ids and texts it uses; convert the model to tokenizer.json", set.Class), err: ErrUnsupported}
	}
	if why, ok := pieceClasses[class]; ok {
		return nil, &Error{file: configFile, field: "tokenizer_class", Offset: -1, reason: fmt.Sprintf("%s: %s; convert the model to tokenizer.json", set.Class, why), err: ErrUnsupported}
	}
	if err := t.declarePieces(fsys, class, set); err != nil {
		return nil, err
	}
	if err := t.indexPieces(file); err != nil {
		return nil, err
	}
	// As in SentencePiece's add_bos; transformers' classes that begin texts otherwise declare it.
	if id, ok := t.TokenID(t.config.bos); ok && t.config.bos != "" && (set.AddBOS == nil || *set.AddBOS) && class != "T5" {
		t.before = []uint32{id}
	}
	id, ok := t.TokenID(t.config.eos)
	if ok && t.config.eos != "" {
		t.eos = []uint32{id}
		if set.AddEOS != nil && *set.AddEOS || class == "T5" {
			t.after = []uint32{id}
		}
	}
	return t, nil
}

// declarePieces adds the tokens that tokenizer_config.json and added_tokens.json declare, with the IDs that they
// declare. A declared token takes the ID of a piece even if that has another text.
func (t *Tokenizer) declarePieces(fsys fs.FS, class string, set pieceSettings) error {
	d, err := readDeclared(fsys)
	if err != nil {
		return err
	}
	more, err := readAddedTokens(fsys)
	if err != nil {
		return err
	}
	at := make(map[string]int, len(t.added))
	ids := make(map[uint32]int, len(t.added))
	for i, a := range t.added {
		at[a.Content], ids[a.ID] = i, i
	}
	names := make(map[string]bool, len(d.named))
	for _, a := range d.named {
		names[a.Content] = true
	}
	size := uint32(t.vocab.Len())
	add := func(file string, a AddedToken) error {
		fail := func(format string, args ...any) error {
			return &Error{file: file, field: strconv.Itoa(int(a.ID)), Offset: -1, reason: clip(fmt.Sprintf(format, args...)), err: ErrFormat}
		}
		a.Special = a.Special || names[a.Content]
		a.normalized = false // transformers' classes for SentencePiece match tokens in the text as it is
		switch {
		case a.Content == "":
			return nil
		case !utf8.ValidString(a.Content):
			return fail("%.100q is not UTF-8", a.Content)
		case a.ID > vocab.MaxID:
			return &Error{file: file, field: strconv.Itoa(int(a.ID)), Offset: -1, reason: fmt.Sprintf("the limit is %d", vocab.MaxID), err: ErrLimit}
		}
		if i, known := at[a.Content]; known {
			if t.added[i].ID != a.ID {
				return fail("%.100q has the id %d already", a.Content, t.added[i].ID)
			}
			a.Special = a.Special || t.added[i].Special
			t.added[i] = a
			return nil
		}
		if i, taken := ids[a.ID]; taken {
			delete(at, t.added[i].Content) // a control piece with another text
			t.added[i] = a
			at[a.Content] = i
			return nil
		}
		at[a.Content], ids[a.ID] = len(t.added), len(t.added)
		t.added = append(t.added, a)
		size = max(size, a.ID+1)
		return nil
	}
	for _, a := range d.added {
		if err := add(configFile, a); err != nil {
			return err
		}
	}
	for _, a := range more {
		if _, known := at[a.Content]; known {
			continue
		}
		if err := add(addedFile, a); err != nil {
			return err
		}
	}
	if class == "T5" && len(d.added) == 0 {
		n := 100
		if set.ExtraIDs != nil {
			n = *set.ExtraIDs
		}
		if n < 0 || n > maxDeclared {
			return &Error{file: configFile, field: "extra_ids", Offset: -1, reason: fmt.Sprintf("%d, the limit is %d", n, maxDeclared), err: ErrLimit}
		}
		for k := n - 1; k >= 0; k-- {
			if err := add(configFile, AddedToken{ID: size, Content: fmt.Sprintf("<extra_id_%d>", k), Special: true}); err != nil {
				return err
			}
		}
	}
	// Named tokens that nothing gives an id have that of their piece, or the next free one.
	for _, a := range d.named {
		if _, known := at[a.Content]; known {
			continue
		}
		id, ok := t.vocab.Lookup(a.Content)
		if !ok {
			id = size
		}
		if int64(id) == t.unk {
			continue
		}
		a.ID = id
		if err := add(configFile, a); err != nil {
			return err
		}
	}
	return nil
}

const addedFile = "added_tokens.json"

// readAddedTokens reads added_tokens.json, {"<|im_start|>": 32000, …}, if present, ordered by ID.
func readAddedTokens(fsys fs.FS) ([]AddedToken, error) {
	data, err := readFile(fsys, addedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []AddedToken
	seen := map[uint32]bool{}
	var key []byte
	r := jsonr.New(jsonr.Span{Data: data}, "")
	for r.Object(); r.Key(&key); {
		a := AddedToken{Content: string(key), Special: true}
		switch a.ID = r.Uint32(); {
		case r.Err() != nil:
		case seen[a.ID]:
			r.Fail("has the id %d of another token", a.ID)
		case len(list) == maxDeclared:
			r.Fail("is one of more than %d tokens", maxDeclared)
		}
		seen[a.ID] = true
		list = append(list, a)
	}
	if err := r.End(); err != nil {
		return nil, inFile(addedFile, malformed(err))
	}
	slices.SortFunc(list, func(a, b AddedToken) int { return int(int64(a.ID) - int64(b.ID)) })
	return list, nil
}
