// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package codec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/work"
)

// TestWorkOfNested counts the bytes examined in arguments that are made to be read twice. Run it with
//
//	go test -tags weftcount -run TestWork ./...
func TestWorkOfNested(t *testing.T) {
	const ns = "]<]minimax[>["
	schema := args.Compile([]byte(`{"properties":{"s":{"type":"string"},"i":{"type":"integer"}}}`))
	var params strings.Builder
	for i := range 500 {
		fmt.Fprintf(&params, "~<p%d>a~</p%d>\n", i, i)
	}
	name := strings.Repeat("n", 127)
	for what, text := range map[string]string{
		"text":       "~<s>" + strings.Repeat("some text\n", 1000),
		"held":       "~<i>" + strings.Repeat("1234567890", 1000),
		"brackets":   "~<s>" + strings.Repeat("]", 10000),
		"starts":     "~<s>" + strings.Repeat("]<", 5000),
		"prefixes":   "~<s>" + strings.Repeat("~", 1000),
		"tags":       "~<s>" + strings.Repeat("~<s>", 1000),
		"other ends": "~<s>" + strings.Repeat("~</t>", 1000),
		"ends":       "~<s>" + strings.Repeat("~</s>x", 1000),
		"long ends":  "~<" + name + ">" + strings.Repeat("~</"+name+">x", 100),
		"almost":     "~<" + name + ">" + strings.Repeat("~</"+name, 100),
		"gaps":       "~<s>" + strings.Repeat("~</s>"+strings.Repeat(" ", 64)+"]<", 100),
		"wide gaps":  "~<s>" + strings.Repeat("~</s>"+strings.Repeat(" ", 70), 100),
		"call ends":  "~<s>" + strings.Repeat("~</invoke> .", 1000),
		"blank":      strings.Repeat(" \n", 5000),
		"parameters": params.String(),
		"undeclared": "~<x>" + strings.Repeat(" ", 64) + strings.Repeat("~</x>.", 500),
		"deep":       strings.Repeat("~<x>", 64) + strings.Repeat("~</x>", 64),
	} {
		src := []byte(strings.ReplaceAll(text, "~", ns))
		for _, size := range []int{1, 7, len(src)} {
			d := codec.Nested{Prefix: ns}.NewDecoder()
			d.Begin(schema)
			work.Take()
			dst := make([]byte, 0, 2*len(src))
			for from, end := 0, 0; end < len(src); {
				end = min(end+size, len(src))
				_, n, _ := d.Append(dst, src[from:end], end == len(src))
				from += n
			}
			looks := work.Take()
			require.LessOrEqual(t, looks, 4*len(src)+100, "%s in chunks of %d", what, size)
			require.GreaterOrEqual(t, looks, len(src)-100, what)
		}
	}
}
