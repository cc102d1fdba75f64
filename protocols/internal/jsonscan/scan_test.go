// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"encoding/json"
	"os"
	"testing"
)

func BenchmarkScan(b *testing.B) {
	body, err := os.ReadFile("/work/shared/bench/protocols/anthropic_request.json")
	if err != nil {
		b.Skip()
	}
	lim := Limits{Bytes: 1 << 26, Depth: 128, Values: 1 << 20}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := Scan(body, lim); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("valid", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			json.Valid(body)
		}
	})
}
