// SPDX-License-Identifier: Apache-2.0

// Package pretok cuts text into pre-tokens, the pieces inside which a model looks for tokens.
//
// Every model family publishes its rule: as a regular expression, or as one of a few fixed rules. This package has
// all pre-tokenizers of Hugging Face's tokenizers 0.23. Expressions in wide use have a hand-written scanner,
// found by their exact text with [Lookup]; any other is compiled with [Compile] or refused, because an almost
// correct split gives wrong token ids.
//
// # Terms
//
// A [Splitter] is one cutting step. It returns the pieces of a text in order; removed text is in none of them. Models
// that cut in several steps apply each to the pieces of the one before it, where the ends of a piece act as the ends of
// the text.
//
// A [Func] is a step that removes nothing and never examines earlier text: given a text and the start of a piece, it
// returns the end of the piece. A run that the expression does not match is also a piece (the behavior [Isolated]). The
// scanners are Funcs. A [Scanner] gives the pieces of one many at a time.
//
//	tokenizer.json          here
//	Split, Regex            [NewSplit]: a scanner, or a [Split] with a [Pattern]
//	Split, String           [Split] with [Literal]
//	ByteLevel, use_regex    [GPT2]
//	BertPreTokenizer        [Bert]
//	CharDelimiterSplit      [CharDelimiter]
//	Digits                  [Digits]
//	FixedLength             [FixedLength]
//	Metaspace               [Metaspace], after the rewriting of spaces
//	Punctuation             [Punctuation]
//	UnicodeScripts          [UnicodeScripts]
//	Whitespace              [Whitespace]
//	WhitespaceSplit         [WhitespaceSplit]
//
// # Expressions
//
// The syntax is Oniguruma's (version 6.9, its default), with the results it has there:
//
//	x  \t \n \v \f \r \a \e \0 \012 \x41 \xe4\xb8\xad \x{4e2d} \u4e2d   characters
//	.  \N \O \s \S \d \D \w \W \h \H \R                                 kinds of characters
//	\p{L} \P{Lu} \p{^Han} \p{Alnum}            general categories, scripts, POSIX names, and
//	                                            Alphabetic, Lowercase, Uppercase, White_Space, Emoji,
//	                                            Extended_Pictographic, Ideographic, Any, Assigned
//	[a-z] [^…] [a[bc]] [a-z&&[^b]] [[:alpha:]]  classes
//	^ $ \A \z \Z \b \B                          positions; ^ and $ match at the ends of a line
//	a|b (…) (?:…) (?<name>…) (?>…)              groups; nothing is captured
//	(?i) (?m) (?x) (?i-x:…)                     options; m lets the dot match a newline
//	(?=…) (?!…) (?<=…) (?<!…)                   look-around; behind only what has a greatest length
//	* + ? {n} {n,} {,m} {n,m}                   with ? lazy, and with + possessive but for the last four,
//	                                            where it is a repeat of the repeat
//
// Refused, with an [*Error] that names the construct and its position: backreferences, subexpression calls,
// conditions, absent operators, callouts, \G \K \X \y \Y, other properties and options; (?i) on letters that fold
// to several, ß and ss for one, and on classes with such letters; a counted repeat of what may be empty, where
// Oniguruma's result depends on the size of its program; {n,m} above 1000 of one character; look-behind with
// more than 256 forms; - in a class where it is neither a range nor at an end.
//
// [CompileRust] and [LookupRust] read the syntax of Rust's crates fancy-regex and regex instead, for tiktoken:
//
//	{n,m}+          is possessive
//	^ $             match at the ends of the text
//	.               matches a newline with (?s)
//	\w              has Alphabetic, M, Nd, Pc and Join_Control
//	\xHH            is a code point
//	\pL \u{4e2d} (?P<name>…)  are understood
//
// Refused there as well: \b \B \h \H \N \O \R \Z \0 \< \> and escapes of other letters; (?m), (?x) and, in a group, (?i); { that begins
// no count, {,m}, {n,m} with n above m; two quantifiers in a row; repeats of what may be empty; -- ~~ and [: in a class;
// POSIX names in \p{…}; (?i) on complements and intersections that it changes.
//
// # Guarantees
//
// For valid UTF-8 the cuts equal those of Hugging Face's tokenizers 0.23, whose expressions follow Unicode 16. A byte
// that is not part of valid UTF-8 is treated as the symbol U+FFFD, and is unchanged in the text. Functions and types
// are pure and safe for concurrent use.
//
// # Cost
//
// Scanners do not allocate and examine each byte a bounded number of times. A Pattern is several times slower. Its time
// is linear in the text, with a factor that depends on the expression: if the number of backtracking steps exceeds a
// multiple of the text's length, it records the results of choices, in up to two bits for each choice in the expression
// and each byte of text (64 in atomic groups and possessive loops). Where the reference gives up on a text after ten
// million steps, a Pattern continues.
package pretok
