// SPDX-License-Identifier: Apache-2.0

package pretok

import "strings"

// Func is one cutting step: it returns the end of the piece of s that starts at i. The result is above i;
// i must be below len(s) and the start of a piece.
type Func func(s string, i int) int

// The published expressions. A file may contain line ends literally or as escapes.
const (
	contr     = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	blankTail = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	uClass    = `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
	lClass    = `\p{Ll}\p{Lm}\p{Lo}\p{M}`
	notHan    = `&&[^\p{Han}]`
	lead      = `[^\r\n\p{L}\p{N}]?`

	gpt2Expr  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	gpt2Short = `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	// tiktoken's present spelling, which means the same.
	gpt2Possessive = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`

	cl100kExpr = contr + `|` + lead + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blankTail
	qwen2Expr  = contr + `|` + lead + `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blankTail
	qwen35Expr = contr + `|` + lead + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + blankTail
	o200kExpr  = lead + `[` + uClass + `]*[` + lClass + `]+` + contr + `?|` +
		lead + `[` + uClass + `]+[` + lClass + `]*` + contr + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blankTail
	tekkenExpr = lead + `[` + uClass + `]*[` + lClass + `]+|` +
		lead + `[` + uClass + `]+[` + lClass + `]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blankTail
	kimiExpr = `[\p{Han}]+|` + lead + `[` + uClass + notHan + `]*[` + lClass + notHan + `]+` + contr + `?|` +
		lead + `[` + uClass + notHan + `]+[` + lClass + notHan + `]*` + contr + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blankTail
	// tiktoken's spellings of cl100k_base: the first means the same as cl100kExpr.
	cl100kFirstExpr = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	cl100kBaseExpr  = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`

	clipExpr = `<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`

	deepSeekDigitsExpr = `\p{N}{1,3}`
	deepSeekCJKExpr    = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
	deepSeekWordsExpr  = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" + blankTail

	then = "\x00" // between expressions in a row
)

// Lookup returns the scanner for a published expression, as spelled in the pattern of a Split
// pre-tokenizer with behavior Isolated. Each of several expressions splits the pieces of the previous one. ok is false
// for expressions that this package does not know.
func Lookup(exprs ...string) (f Func, ok bool) {
	expr := strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(strings.Join(exprs, then))
	if strings.Count(expr, then) != len(exprs)-1 {
		return nil, false
	}
	switch expr {
	case gpt2Expr, gpt2Short, gpt2Possessive:
		f = GPT2
	case cl100kExpr, cl100kFirstExpr:
		f = CL100K
	case cl100kBaseExpr:
		f = CL100KBase
	case clipExpr:
		f = CLIP
	case qwen2Expr:
		f = Qwen2
	case qwen35Expr:
		f = Qwen35
	case o200kExpr:
		f = O200K
	case tekkenExpr:
		f = Tekken
	case kimiExpr:
		f = Kimi
	case deepSeekDigitsExpr:
		f = DeepSeekDigits
	case deepSeekCJKExpr:
		f = DeepSeekCJK
	case deepSeekWordsExpr:
		f = DeepSeekWords
	case deepSeekDigitsExpr + then + deepSeekCJKExpr + then + deepSeekWordsExpr:
		f = DeepSeek
	}
	return f, f != nil
}
