// SPDX-License-Identifier: Apache-2.0

package tiktoken

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

const (
	// MaxFile is the longest rank file in bytes. The file of gpt-oss has 3.6 MB.
	MaxFile = 64 << 20
	// MaxToken is the longest token in bytes. The longest of GLM 4 has 512.
	MaxToken = 1024
)

// ErrLimit is wrapped by an [Error] if a file exceeds a limit, not if it is malformed.
var ErrLimit = errors.New("limit exceeded")

// Error reports where a rank file could not be read.
type Error struct {
	Line   int   // from 1
	Offset int64 // bytes from the start of the file
	Reason string
	Err    error // ErrLimit or nil
}

// Error returns line, reason and offset.
func (e *Error) Error() string {
	return fmt.Sprintf("tiktoken: line %d: %s (offset %d)", e.Line, e.Reason, e.Offset)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Parse reads a rank file. The ids of the table are the ranks. A line must hold base64 with padding, one space and a
// decimal number; empty lines and tokens "=" are skipped, as in tiktoken. Ranks may come in any order and with gaps, but neither a
// rank nor a token twice. Errors are [*Error]. Memory is bounded by a small multiple of the file's size and what the
// largest rank asks for, at most 16 MB.
func Parse(data []byte) (*vocab.Table, error) {
	line, at := 1, 0
	fail := func(kind error, i int, format string, args ...any) (*vocab.Table, error) {
		return nil, &Error{Line: line, Offset: int64(at + i), Reason: fmt.Sprintf(format, args...), Err: kind}
	}
	if len(data) > MaxFile {
		return fail(ErrLimit, 0, "the file has %d bytes, the limit is %d", len(data), MaxFile)
	}
	var b vocab.Builder
	b.Grow(bytes.Count(data, []byte{'\n'})+1, len(data)/2)
	for ; at < len(data); line++ {
		text, rest, _ := bytes.Cut(data[at:], []byte{'\n'})
		next := len(data) - len(rest)
		text = bytes.TrimSuffix(text, []byte{'\r'})
		if len(text) == 0 {
			at = next
			continue
		}
		code, number, ok := bytes.Cut(text, []byte{' '})
		if !ok {
			return fail(nil, len(text), "ends without a rank")
		}
		if base64.StdEncoding.DecodedLen(len(code)) > MaxToken+2 {
			return fail(ErrLimit, 0, "a token of more than %d bytes", MaxToken)
		}
		if i := bytes.IndexByte(code, '\r'); i >= 0 {
			return fail(nil, i, "is not base64") // the decoder would skip it
		}
		token, err := base64.StdEncoding.Strict().AppendDecode(b.Scratch(), code)
		// Python decodes "=" to nothing. No text contains that token, the last one of Whisper's multilingual.tiktoken.
		unused := string(code) == "="
		if unused {
			err = nil
		}
		if bad, ok := errors.AsType[base64.CorruptInputError](err); ok {
			return fail(nil, min(int(bad), len(code)), "is not base64")
		}
		if len(token) == 0 && !unused {
			return fail(nil, 0, "is an empty token")
		}
		if len(token) > MaxToken {
			return fail(ErrLimit, 0, "a token of more than %d bytes", MaxToken)
		}
		rank, ok := decimal(number)
		if !ok {
			return fail(nil, len(code)+1, "%.20q is not a rank", number)
		}
		if rank > vocab.MaxID {
			return fail(ErrLimit, len(code)+1, "rank %d, the limit is %d", rank, vocab.MaxID)
		}
		if unused {
			at = next
			continue
		}
		if err := b.Add(uint32(rank), token, true); err != nil {
			return fail(nil, len(code)+1, "rank %d appears twice", rank)
		}
		at = next
	}
	v, err := b.Build()
	if err != nil {
		if at, line = twice(data); line > 0 {
			return fail(nil, 0, "is a token that appears twice")
		}
		line, at = 1, 0
		return fail(nil, 0, "%v", err)
	}
	if v.Count() == 0 {
		line = max(line-1, 1)
		return fail(nil, 0, "no tokens")
	}
	return v, nil
}

// decimal reads at most 10 digits.
func decimal(s []byte) (n uint64, ok bool) {
	if len(s) == 0 || len(s) > 10 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// twice returns the first line, from 1, whose token an earlier line has, and its offset.
func twice(data []byte) (at, line int) {
	seen := map[string]bool{}
	for text := range bytes.Lines(data) {
		line++
		if code, _, ok := bytes.Cut(text, []byte{' '}); ok {
			if seen[string(code)] {
				return at, line
			}
			seen[string(code)] = true
		}
		at += len(text)
	}
	return 0, 0
}

// Merges returns all merges of two tokens of v into one, where an id is a rank: the lower, the sooner. Merges of the
// same token are adjacent, ordered by their first part, then the second. It fails with [ErrLimit] if there are more than
// bpe.MaxMerges of them or a token is longer than [MaxToken].
func Merges(v *vocab.Table) ([]bpe.Merge, error) {
	merges := make([]bpe.Merge, 0, 3*v.Count())
	for id := range uint32(v.Len()) {
		token := view(v.Bytes(id))
		if len(token) > MaxToken {
			return nil, fmt.Errorf("tiktoken: token %d has %d bytes: %w", id, len(token), ErrLimit)
		}
		start := len(merges)
		for i := 1; i < len(token); i++ {
			a, ok := v.Lookup(token[:i])
			if !ok {
				continue
			}
			if b, ok := v.Lookup(token[i:]); ok {
				merges = append(merges, bpe.Merge{A: a, B: b, To: id})
			}
		}
		slices.SortFunc(merges[start:], func(x, y bpe.Merge) int {
			return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
		})
		if len(merges) > bpe.MaxMerges {
			return nil, fmt.Errorf("tiktoken: more than %d merges: %w", bpe.MaxMerges, ErrLimit)
		}
	}
	return merges, nil
}

// view returns b as a string without copying. b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
