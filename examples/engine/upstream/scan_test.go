// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

// chunkCases are chunks of a stream with three choices. Those with quick are decoded by scan.
var chunkCases = []struct {
	name, data string
	quick      bool
}{
	{"vLLM", `{"id":"cmpl-1","object":"text_completion","created":1795392000,"model":"m","choices":[{"index":0,"text":" a","logprobs":null,` +
		`"finish_reason":null,"stop_reason":null,"token_ids":[264],"prompt_token_ids":null}]}`, true},
	{"prompt ids", `{"choices":[{"index":0,"text":"","token_ids":[],"prompt_token_ids":[1, 4294967296,3]}],"usage":null}`, true},
	{"Python", `{"id": "cmpl-1", "choices": [{"index": 2, "text": "\u00e9\n\"\\\/\b\f\r\t", "token_ids": [1, 2]}, {"index": 0, "text": "b\u0000"}]}`, true},
	{"text outside ASCII", `{"choices":[{"text":"é漢😀","index":1}]}`, true},
	{"no index", `{"choices":[{"text":"a"}]}`, true},
	{"no choice", `{"choices":[],"x":true,"y":false,"error":null}`, true},
	{"no choices", " {\"id\":\"\"}\n", true},
	{"long numbers", `{"choices":[{"index":0,"text":"a","token_ids":[4294967295,0],"x":922337203685477579}]}`, true},
	{"stop", `{"choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":[151645]}]}`, true},
	{"length", `{"choices":[{"index":0,"text":"a","finish_reason": "length"}]}`, true},
	{"usage", `{"choices":[],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2}}`, true},
	{"usage and details", `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details": {"cached_tokens":1}}}`, true},
	{"usage before choices", `{"usage":{"prompt_tokens":5,"prompt_tokens_details":null},"choices":[{"index":1,"text":"a","finish_reason":"stop"}]}`, true},

	{"empty", `{}`, false},
	{"finish reason", `{"choices":[{"index":0,"text":"","finish_reason":"stop","stop_reason":151645,"token_ids":[151645]}]}`, false},
	{"stop sequence", `{"choices":[{"index":0,"text":"","finish_reason":"stop","stop_reason":"END"}]}`, false},
	{"aborted", `{"choices":[{"index":0,"text":"a","finish_reason":"abort"}]}`, false},
	{"usage with other details", `{"choices":[],"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":1,"audio_tokens":2}}}`, false},
	{"usage with details of the output", `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens_details":{"reasoning_tokens":1}}}`, false},
	{"repeated usage", `{"choices":[],"usage":{"prompt_tokens":5},"usage":null}`, false},
	{"repeated details", `{"choices":[],"usage":{"prompt_tokens_details":{"cached_tokens":1},"prompt_tokens_details":null}}`, false},
	{"usage without fields", `{"choices":[],"usage":{}}`, false},
	{"negative usage", `{"choices":[],"usage":{"prompt_tokens":-1}}`, false},
	{"null in usage", `{"choices":[],"usage":{"prompt_tokens":null}}`, false},
	{"repeated finish reason", `{"choices":[{"index":0,"text":"a","finish_reason":"stop","finish_reason":"length"}]}`, false},
	{"error", `{"error":{"message":"no"}}`, false},
	{"other case", `{"choices":[{"index":0,"text":"a","Text":"b"}],"Choices":[{"index":1,"text":"c"}]}`, false},
	{"folded name", `{"choices":[{"index":0,"text":"a","token_idſ":[7]}]}`, false},
	{"escaped name", `{"choices":[{"index":0,"text":"a","te\u0078t":"b"}]}`, false},
	{"repeated choices", `{"choices":[{"index":0,"text":"a"}],"choices":[{"index":1}]}`, false},
	{"repeated text", `{"choices":[{"index":0,"text":"a","text":"b"}]}`, false},
	{"repeated index", `{"choices":[{"index":0,"text":"a","index":1}]}`, false},
	{"repeated ids", `{"choices":[{"index":0,"token_ids":[1,2],"token_ids":null}]}`, false},
	{"repeated ids, null first", `{"choices":[{"index":0,"token_ids":null,"token_ids":[1,2]}]}`, false},
	{"surrogates", `{"choices":[{"index":0,"text":"\ud83d\ude00"}]}`, false},
	{"lone surrogate", `{"choices":[{"index":0,"text":"\udc00"}]}`, false},
	{"invalid UTF-8", "{\"choices\":[{\"index\":0,\"text\":\"\xff\"}]}", false},
	{"invalid UTF-8 after an escape", "{\"choices\":[{\"index\":0,\"text\":\"\\n\xff\"}]}", false},
	{"null text", `{"choices":[{"index":0,"text":null}]}`, false},
	{"nested", `{"choices":[{"index":0,"text":"a","logprobs":{"tokens":["a"]}}]}`, false},
	{"log probabilities as a number", `{"choices":[{"index":0,"text":"a","logprobs":0}]}`, false},
	{"fraction", `{"choices":[{"index":0,"text":"a","x":1.5}]}`, false},
	{"negative id", `{"choices":[{"index":0,"token_ids":[-1]}]}`, false},
	{"id over 32 bits", `{"choices":[{"index":0,"token_ids":[4294967296]}]}`, false},
	{"leading zero", `{"choices":[{"index":00}]}`, false},
	{"choice out of range", `{"choices":[{"index":3,"text":"a"}]}`, false},
	{"huge index", `{"choices":[{"index":18446744073709551616}]}`, false},
	{"control character", "{\"choices\":[{\"index\":0,\"text\":\"\n\"}]}", false},
	{"control character in a skipped string", "{\"id\":\"\n\"}", false},
	{"unknown escape", `{"choices":[{"text":"\x"}]}`, false},
	{"comma at the end", `{"choices":[{"text":"a",}]}`, false},
	{"cut", `{"choices":[{"text":"a"}]`, false},
	{"more after it", `{"choices":[]} {}`, false},
	{"no JSON", `hello`, false},
	{"nothing", ``, false},
}

// checkScan compares scan with encoding/json and returns whether scan decoded the chunk. That must not depend on the
// chunks before it, which may have set a pattern.
func checkScan(t testing.TB, data []byte, chunksBefore ...string) bool {
	before := Step{Choice: 9}
	r := chunkReader{n: 3, ids: []uint32{1}, text: []byte("x")}
	got, ok := r.scan([]Step{before}, data)
	for _, c := range append(chunksBefore, chunkCases[0].data) {
		r := chunkReader{n: 3}
		for range 2 {
			r.scan(nil, []byte(c))
		}
		again, okAgain := r.scan([]Step{before}, data)
		if require.Equal(t, ok, okAgain, "%q after %q", data, c); ok {
			require.Equal(t, plainSteps(got), plainSteps(again), "%q after %q", data, c)
		}
	}
	if !ok {
		return false
	}
	want, err := appendSteps([]Step{before}, data, 3)
	require.NoError(t, err, "%q", data)
	opt := cmp.Options{cmp.AllowUnexported(Step{}), cmpopts.EquateEmpty()}
	require.Empty(t, cmp.Diff(want, got, opt), "%q", data)
	return true
}

// plainSteps returns a comparable form of steps.
func plainSteps(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		u := s.Usage
		s.Usage = nil
		fmt.Fprintf(&b, "%+v %+v\n", s, u)
	}
	return b.String()
}

// TestPattern checks that chunks which differ only in text and ids are decoded by the pattern, and that it stops learning.
func TestPattern(t *testing.T) {
	r := chunkReader{n: 3}
	chunk := func(id, text, ids string) []byte {
		return []byte(`{"id":"` + id + `","choices":[{"index":1,"text":` + text + `,"finish_reason":null,"token_ids": [` + ids + `]}]}`)
	}
	_, ok := r.scan(nil, chunk(strings.Repeat("a", maxPattern), `"b"`, "1"))
	require.True(t, ok)
	require.Zero(t, r.like.learned)
	_, ok = r.match(nil, chunk("a", `"b"`, "1"))
	require.False(t, ok)
	_, ok = r.scan(nil, chunk("a", `"b"`, "1"))
	require.True(t, ok)
	for _, tt := range []struct {
		text, ids string
		want      Step
	}{
		{`"b"`, "1", Step{Choice: 1, Text: []byte("b"), IDs: []uint32{1}, StopID: -1}},
		{`"\n,\"token_ids\": ["`, "2, 3", Step{Choice: 1, Text: []byte("\n,\"token_ids\": ["), IDs: []uint32{2, 3}, StopID: -1}},
		{`"é"`, "", Step{Choice: 1, Text: []byte("é"), IDs: []uint32{}, StopID: -1}},
	} {
		r.ids, r.text = r.ids[:0], r.text[:0]
		got, ok := r.match(nil, chunk("a", tt.text, tt.ids))
		require.True(t, ok, tt.text)
		require.Equal(t, []Step{tt.want}, got)
	}
	for i := range 2 * maxLearned {
		_, ok := r.scan(nil, chunk(fmt.Sprint(i), `"b"`, "1"))
		require.True(t, ok)
	}
	require.Equal(t, maxLearned, r.like.learned)
	require.Contains(t, string(r.like.head), fmt.Sprintf(`"id":"%d"`, maxLearned-2))
}

func TestScanEqualsUnmarshal(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, tt := range chunkCases {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.quick, checkScan(t, []byte(tt.data)))
			for i := 0; i < len(tt.data); i += step { // cut anywhere
				checkScan(t, []byte(tt.data[:i]), tt.data)
			}
			for _, c := range []byte("\"\\{}[],:0a \n\x00\xff") { // one byte changed
				for i := int(c) % step; i < len(tt.data); i += step {
					b := []byte(tt.data)
					b[i] = c
					checkScan(t, b, tt.data)
				}
			}
		})
	}
}

func FuzzScanEqualsUnmarshal(f *testing.F) {
	for _, tt := range chunkCases {
		f.Add([]byte(tt.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkScan(t, data) })
}

func TestScanDoesNotAllocate(t *testing.T) {
	r := chunkReader{n: 3}
	var steps []Step
	for _, tt := range chunkCases {
		if tt.quick && !strings.HasPrefix(tt.name, "usage") {
			data := []byte(tt.data)
			require.Zero(t, testing.AllocsPerRun(10, func() {
				var err error
				steps, err = r.appendSteps(steps[:0], data)
				require.NoError(t, err)
			}), tt.name)
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	data := []byte(chunkCases[0].data)
	var steps []Step
	b.Run("way=scan", func(b *testing.B) {
		r := chunkReader{n: 1}
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			steps, _ = r.appendSteps(steps[:0], data)
		}
	})
	b.Run("way=unmarshal", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			steps, _ = appendSteps(steps[:0], data, 1)
		}
	})
}
