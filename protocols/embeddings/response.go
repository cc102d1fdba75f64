// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// Response is a response: one vector for each input.
type Response struct {
	Model string
	Data  []Embedding

	PromptTokens int64
	TotalTokens  int64 // written as PromptTokens if 0
}

// Embedding is the vector of an input.
type Embedding struct {
	Index  int // index of the input
	Vector []float32
}

// AppendJSON appends the response to dst, with vectors in base64 if encoded is true; see [Request.Base64]. Infinities
// and NaN, which JSON cannot represent, are null in a list; base64 preserves them. It does not allocate if dst has
// sufficient capacity.
func (r *Response) AppendJSON(dst []byte, encoded bool) []byte {
	dst = append(dst, `{"object":"list"`...)
	dst = append(dst, `,"data":[`...)
	for i := range r.Data {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"object":"embedding","index":`...)
		dst = strconv.AppendInt(dst, int64(r.Data[i].Index), 10)
		dst = append(dst, `,"embedding":`...)
		if encoded {
			dst = appendBase64(dst, r.Data[i].Vector)
		} else {
			dst = appendFloats(dst, r.Data[i].Vector)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"model":`...)
	dst = jsonw.AppendString(dst, r.Model)
	dst = append(dst, `,"usage":{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, r.PromptTokens, 10)
	dst = append(dst, `,"total_tokens":`...)
	total := r.TotalTokens
	if total == 0 {
		total = r.PromptTokens
	}
	dst = strconv.AppendInt(dst, total, 10)
	return append(dst, `}}`...)
}

func appendFloats(dst []byte, v []float32) []byte {
	dst = append(dst, '[')
	for i, x := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch f := float64(x); {
		case math.IsNaN(f) || math.IsInf(f, 0):
			dst = append(dst, "null"...)
		default:
			dst = strconv.AppendFloat(dst, f, 'g', -1, 32)
		}
	}
	return append(dst, ']')
}

func appendBase64(dst []byte, v []float32) []byte {
	dst = append(dst, '"')
	var buf [768]byte // a multiple of 3 and of 4, so that only the end is padded
	for len(v) > 0 {
		n := min(len(v), len(buf)/4)
		for i, x := range v[:n] {
			binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(x))
		}
		dst = base64.StdEncoding.AppendEncode(dst, buf[:4*n])
		v = v[n:]
	}
	return append(dst, '"')
}

// DecodeResponse parses a response in either format, regardless of the requested one. The default of an embedding's
// index is its position in the list. For an error body, it returns a *[block.Error] of kind WrongType; use apierr.Parse
// for such bodies. The limits are as in [Decode], except that the default of Body is 1 GiB and the numbers of vectors
// do not count as values.
func DecodeResponse(body []byte, lim *block.Limits) (*Response, error) {
	scan, _ := bounds(lim, 1<<30)
	scan.Opaque = func(key []byte, _ int) bool { return string(key) == "embedding" }
	doc, err := jsonscan.Scan(body, scan)
	if err != nil {
		return nil, streamdec.Fault(err)
	}
	root := doc.Root()
	if root.Kind() != jsonscan.Object {
		return nil, streamdec.Wrong(root, "an object")
	}
	list := root.Get("data")
	if list.Kind() != jsonscan.Array {
		if !list.Exists() {
			list = root
		}
		return nil, streamdec.Wrong(list, "a list of embeddings as data")
	}
	r := &Response{Data: make([]Embedding, 0, list.Len())}
	r.Model, _ = root.Get("model").Str(nil)
	usage := root.Get("usage")
	r.PromptTokens, r.TotalTokens = streamdec.Int(usage.Get("prompt_tokens")), streamdec.Int(usage.Get("total_tokens"))
	for e := list.First(); e.Exists(); e = list.Next(e) {
		x := Embedding{Index: len(r.Data)}
		if n, ok := e.Get("index").Int(); ok {
			x.Index = int(n)
		}
		v := e.Get("embedding")
		ok := false
		switch v.Kind() {
		case jsonscan.Array:
			x.Vector, ok = floats(v.Raw())
		case jsonscan.String:
			text, _ := v.Str(nil)
			x.Vector, ok = fromBase64(text)
		case jsonscan.Absent:
			v = e
		}
		if !ok {
			return nil, streamdec.Wrong(v, "an embedding, as numbers or in base64,")
		}
		r.Data = append(r.Data, x)
	}
	return r, nil
}

// floats parses a validated array of numbers. null becomes NaN.
func floats(raw []byte) ([]float32, bool) {
	n := 1
	for _, c := range raw {
		if c == ',' {
			n++
		}
	}
	v := make([]float32, 0, n)
	for i := 1; i < len(raw); {
		switch c := raw[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ']':
			i++
			continue
		case c == 'n':
			v = append(v, float32(math.NaN()))
			i += len("null")
			continue
		case c != '-' && (c < '0' || c > '9'):
			return nil, false
		}
		from := i
		for i < len(raw) && raw[i] != ',' && raw[i] != ']' && raw[i] > ' ' {
			i++
		}
		x, err := strconv.ParseFloat(string(raw[from:i]), 32)
		if err != nil && !math.IsInf(x, 0) {
			return nil, false
		}
		v = append(v, float32(x))
	}
	return v, true
}

func fromBase64(text string) ([]float32, bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return nil, false
	}
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v, true
}
