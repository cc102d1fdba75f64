// SPDX-License-Identifier: Apache-2.0

package args

import "testing"

const benchSchema = `{"type":"object","properties":{
	"path":{"type":"string","description":"the file"},"limit":{"type":"integer","minimum":1},
	"edits":{"type":"array","items":{"$ref":"#/$defs/edit"}},"mode":{"anyOf":[{"enum":["a","b"]},{"type":"null"}]}},
	"required":["path"],"$defs":{"edit":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"}}}}}`

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(benchSchema)))
	for b.Loop() {
		Compile([]byte(benchSchema))
	}
}

func BenchmarkOf(b *testing.B) {
	s := Compile([]byte(benchSchema))
	for _, key := range []string{"path", "mode", "absent"} {
		b.Run("key="+key, func(b *testing.B) {
			k := []byte(key)
			b.ReportAllocs()
			for b.Loop() {
				s.Of(k)
			}
		})
	}
}

func BenchmarkAppendValue(b *testing.B) {
	for name, raw := range map[string]string{
		"number": "12345",
		"json":   `{"a": [1, 2, {"b": "text"}], "c": null}`,
		"python": `{'a': [1, 2, {'b': 'text'}], 'c': None}`,
	} {
		b.Run("value="+name, func(b *testing.B) {
			src, dst := []byte(raw), make([]byte, 0, 256)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendValue(dst[:0], src, Object|Integer)
			}
		})
	}
}
