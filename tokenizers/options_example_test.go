// SPDX-License-Identifier: Apache-2.0

package tokenizers_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
)

// A rank file of a vocabulary of one's own, whose special tokens and pattern it does not contain.
func ExampleLoad_rankFile() {
	var ranks strings.Builder
	for b := range 256 {
		fmt.Fprintln(&ranks, base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	tok, err := tokenizers.Load(fstest.MapFS{"bytes.tiktoken": {Data: []byte(ranks.String())}}, &tokenizers.Options{
		File:    "bytes.tiktoken",
		Pattern: `\S+|\s+`,
		Added:   []tokenizers.AddedToken{{ID: 256, Content: "<s>", Special: true}},
		Tokens:  256,
		BOS:     "<s>",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(tok.AppendEncode(nil, "Hi"), tok.AppendEncodeSpecial(nil, "Hi"), tok.AddedTokens()[0].Content)
	// Output: [72 105] [256 72 105] <s>
}

func ExampleDirError() {
	_, err := tokenizers.Load(fstest.MapFS{"merges.txt": {}, "model.safetensors": {}}, nil)
	if missing, ok := errors.AsType[*tokenizers.DirError](err); ok {
		fmt.Println(missing.Found)
	}
	_, err = tokenizers.Load(os.DirFS("models/none"), nil)
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output:
	// [merges.txt model.safetensors]
	// true
}

// Special tokens that a text spells are parsed by default, and can be text or an error.
func ExampleTokenizer_Encode() {
	tok := mini.Load()
	text := []tokenizers.Segment{{Text: "Hi<|im_end|>", Trusted: true}}
	var e tokenizers.Encoding
	for _, p := range []tokenizers.SpecialPolicy{tokenizers.SpecialParse, tokenizers.SpecialText, tokenizers.SpecialRefuse} {
		err := tok.Encode(&e, text, &tokenizers.EncodeOptions{Special: p, Offsets: true})
		if errors.Is(err, tokenizers.ErrSpecial) {
			fmt.Println(err)
			continue
		}
		fmt.Println(len(e.IDs), "ids, the last for the bytes", e.Offsets[len(e.Offsets)-1])
	}
	// Output:
	// 3 ids, the last for the bytes {2 12}
	// 7 ids, the last for the bytes {11 12}
	// tokenizers: special token "<|im_end|>" in the text (offset 2)
}

// Text that an engine streams ends at a stop string, however it is split into chunks.
func ExampleStops_NewText() {
	stops, err := tokenizers.NewStops(&tokenizers.StopOptions{Hidden: []string{"END"}})
	if err != nil {
		panic(err)
	}
	m := stops.NewText()
	for _, chunk := range []string{"one E", "vE", "NDless"} {
		fmt.Printf("%q, %d held\n", m.Append(nil, chunk), m.Held())
	}
	reason, _ := m.Stopped()
	fmt.Printf("%q, then %d bytes, %q\n", reason.Text, m.Ignored(), m.Finish(nil))
	m.Reset()
	fmt.Printf("%q\n", m.Finish(m.AppendBytes(nil, []byte("EN"))))
	// Output:
	// "one ", 1 held
	// "Ev", 1 held
	// "", 0 held
	// "END", then 4 bytes, ""
	// "EN"
}

// Templates print the tokens that the files name.
func ExampleTokenizer_NamedToken() {
	tok := mini.Load()
	fmt.Printf("%q %q, at most %d tokens\n", tok.NamedToken("eos_token"), tok.NamedToken("bos_token"), tok.MaxLength())
	ids, err := tok.EncodeBatchSpecial(context.Background(), []string{"Hi", "there"}, 0)
	fmt.Println(len(ids), err)
	// Output:
	// "<|im_end|>" "", at most 131072 tokens
	// 2 <nil>
}
