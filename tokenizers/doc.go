// SPDX-License-Identifier: Apache-2.0

// Package tokenizers turns text into token ids and back, exactly as the model's own tokenizer does.
//
// It reads the files that models are published with. A file is either understood completely or refused: [Load] returns
// an error naming the part it does not know, because wrong ids silently change prompts, limits and KV-cache keys.
//
// # Terms
//
//   - Added tokens are strings that become one ID wherever they occur in trusted text. Special ones, such as
//     <|im_end|>, can also be omitted from decoded text. The file specifies which tokens are special: Qwen3's <think>
//     is added, but not special.
//   - Text passes the stages added tokens, normalizer, pre-tokenizer, model. Some added tokens are matched after the
//     normalizer. The pre-tokenizer is a list of steps that split or rewrite text into pre-tokens, in each of which
//     the model works alone.
//   - IDs pass the decoder, one or more steps that determine the text of a token among its neighbors. A [Stream] does
//     this for IDs that come one at a time.
//   - Some models add special tokens before and after a text, such as a beginning of sequence; see
//     [Tokenizer.AppendEncodeSpecial].
//   - A [Segment] is a part of a text that is trusted or not. Only trusted text can yield added tokens.
//   - An [Offset] is the range of bytes of the text that an ID represents.
//   - A [Splitter] finds positions at which a text can be split because the IDs before and after do not depend on each
//     other.
//
// # What can be loaded
//
// From tokenizer.json, version 1.0, as Hugging Face tokenizers 0.23 reads it:
//
//	models           BPE (of bytes; of characters, with byte fallback, prefix or suffix), WordPiece, Unigram, WordLevel
//	normalizers      all: NFC NFD NFKC NFKD Lowercase StripAccents Nmt ByteLevel Strip Prepend Replace Precompiled BertNormalizer
//	pre-tokenizers   all: Split ByteLevel Metaspace Whitespace WhitespaceSplit BertPreTokenizer UnicodeScripts
//	                 Punctuation Digits CharDelimiterSplit FixedLength
//	post-processors  ByteLevel RobertaProcessing BertProcessing TemplateProcessing
//	decoders         ByteLevel Metaspace WordPiece BPEDecoder CTC Replace ByteFallback Fuse Strip
//
// and Sequence of any of these; truncation and padding; the added tokens that tokenizer_config.json declares beyond it.
// Expressions in Split and Replace use the syntax of Oniguruma, without backreferences, conditionals and similar
// features. Also tiktoken rank files, Mistral's tekken.json, SentencePiece models, and vocabularies whose class is known;
// see [Load].
//
// Refused, among others: dropout, ByteLevel after another decoder, a template that does not
// contain the text exactly once between fixed tokens, and unknown fields anywhere. Pairs of texts cannot be encoded.
//
// # Guarantees
//
// For valid UTF-8, IDs with and without added special tokens, offsets and decoded text equal the output of Hugging Face
// tokenizers 0.23, which does not accept anything else; those of rank files equal tiktoken's, and those of SentencePiece
// models that library's. Other bytes are kept: each is split like the character U+FFFD.
// A byte-level model encodes it as itself, one with byte fallback by its byte token, so that [Tokenizer.AppendToken]
// returns it; decoded text has U+FFFD there. Without a token for it, it is an unknown character. (Byte-level models may
// lack the 13 bytes that never occur in UTF-8; those become question marks.)
//
// Nothing here panics on any text, IDs or file. Memory during a load is bounded by a small multiple of the file's size,
// which is limited to 256 MiB, and 96 MB for what the largest ID requires. Normalizers and decoders that could lengthen a
// text without bound are refused.
//
// # Concurrency and cost
//
// A [Tokenizer] is immutable and safe for concurrent use by multiple goroutines. Encoding allocates nothing when dst has room and the
// tokenizer is warm; offsets allocate. Time is linear in the text, n log n inside a very long
// pre-token. Each goroutine that encodes at the same time holds 1 to 3 MB of word cache, and buffers that grow with the
// text; the tokenizer keeps one such set per processor, with buffers of up to 4 MB each.
package tokenizers
