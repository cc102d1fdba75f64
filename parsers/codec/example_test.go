// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"fmt"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
)

// decode prints what each chunk gives, and how many bytes are taken. What is not is shown again.
func decode(d grammar.Decoder, chunks ...string) {
	d.Begin(nil)
	var window []byte
	for i, c := range chunks {
		window = append(window, c...)
		out, n, st := d.Append(nil, window, i == len(chunks)-1)
		window = window[n:]
		fmt.Printf("%-18q %-18s %d %t\n", c, out, n, st == grammar.Done)
	}
}

func ExampleGemma() {
	decode(codec.Gemma{}.NewDecoder(), "{city:<", `|"|>San Fran`, `cisco <|`, `"|>,da`, `ys:3}`)
	// Output:
	// "{city:<"          {"city":           6 false
	// "|\"|>San Fran"    "San Fran          13 false
	// "cisco <|"         cisco              8 false
	// "\"|>,da"          "                  6 false
	// "ys:3}"            ,"days":3}         5 true
}

func ExamplePython() {
	decode(codec.Python{}.NewDecoder(), `city='San Fran`, `cisco'`, `, on=(1, No`, `ne), days=3)`)
	// Output:
	// "city='San Fran"   {"city":"San Fran  14 false
	// "cisco'"           cisco              6 false
	// ", on=(1, No"      ","on":[1          11 false
	// "ne), days=3)"     ,null],"days":3}   12 true
}

func ExampleListScanner() {
	var s codec.ListScanner
	for _, c := range []string{`[run(cmd="a[0]`, `]"), now()`, `] and so on`} {
		n, st := s.Scan([]byte(c))
		fmt.Println(n, st == grammar.Done)
	}
	// Output:
	// 14 false
	// 10 false
	// 1 true
}
