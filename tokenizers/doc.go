// SPDX-License-Identifier: Apache-2.0

// Package tokenizers turns text into token ids and back, exactly as the model's own tokenizer does.
//
// It reads the files that models are published with. A file is either understood completely or refused: [Load]
// returns an error naming the part it does not know, because wrong ids are worse than none (they silently change
// prompts, limits and KV-cache keys).
//
// # Terms
//
//   - Added tokens are strings that become one id wherever they stand in the text. Special ones, such as
//     <|im_end|>, also vanish from decoded text on request. Which are which is the file's choice: Qwen3's
//     <think> is added but not special.
//   - Text runs through the stages added tokens, normalizer, pre-tokenizer, model. Some added tokens are looked for
//     after the normalizer. The pre-tokenizer is a list of steps that cut or rewrite; a pre-token is a piece of
//     text that it left together, inside which the model works.
//   - Ids run through the decoder, one or more steps that say what the text of a token is next to its
//     neighbours. A [Stream] is the same for ids that come one at a time.
//   - Ids that the file adds around a text on request (beginning of sequence, say) are its frame.
//   - A [Segment] is text with provenance. Only trusted text can yield added tokens.
//   - An [Offset] says which bytes of the text an id stands for.
//   - A cut point is a place where the ids before and behind do not depend on each other; see [Cutter].
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
//	decoders         ByteLevel Metaspace WordPiece BPEDecoder Replace ByteFallback Fuse Strip
//
// and Sequence of any of these; truncation and padding; the added tokens that tokenizer_config.json declares
// beyond it. Expressions in Split and Replace are those of Oniguruma; what is refused of them is listed in package
// pretok. Also tiktoken rank files ([LoadTiktoken]) and Mistral's tekken.json ([LoadTekken]).
//
// Refused, among others: the decoder CTC, dropout, a frame made of two post-processors, a template that does not put the
// text once between fixed tokens, and unknown fields anywhere. Pairs of texts cannot be encoded.
//
// # Guarantees
//
// For valid UTF-8 ids, ids with frame, offsets and decoded text equal those of Hugging Face tokenizers 0.23, which
// does not accept anything else. Other bytes are kept: each is cut like the character U+FFFD. A byte-level model
// encodes it as itself, one with byte fallback by its byte token, so that [Tokenizer.TokenBytes] gives it back;
// decoded text has U+FFFD there. Without a token for it, it is an unknown character. (Byte-level models may lack the 13
// bytes that UTF-8 never holds; those become question marks.)
//
// Nothing here panics on any text, ids or file. Memory during a load is bounded by a small multiple of the file's
// size, which is limited to [MaxFile], and 96 MB for what the largest id asks for.
//
// # Concurrency and cost
//
// A [Tokenizer] is immutable and safe for concurrent use. Encoding allocates nothing when dst has room and the
// tokenizer is warm; offsets allocate. Time is linear in the text, n log n inside a very long
// pre-token. Each goroutine that encodes at the same time holds 1 to 3 MB of word cache, and buffers that grow with the
// text; the tokenizer keeps one such set per processor, with buffers of up to 4 MB each.
package tokenizers
