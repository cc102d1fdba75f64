// SPDX-License-Identifier: Apache-2.0

// Package tokenizers turns text into token ids and back, exactly as the model's own tokenizer does.
//
// It reads the tokenizer.json that models are published with. A file is either understood completely or
// refused: [Load] returns an error naming the part it does not know, because wrong ids are worse than none
// (they silently change prompts, limits and KV-cache keys).
//
// # Terms
//
//   - Added tokens are strings that become one id wherever they stand in the text. Special ones, such as
//     <|im_end|>, also vanish from decoded text on request. Which are which is the file's choice: Qwen3's
//     <think> is added but not special.
//   - Text runs through the stages added tokens, normalizer, pre-tokenizer, model. A pre-token is a piece
//     of text inside which merges happen; the rules that cut them are in package pretok, the merges in bpe.
//   - Ids that the file adds around a text on request (beginning of sequence, say) are its frame.
//   - A [Segment] is text with provenance. Only trusted text can yield added tokens.
//
// # What can be loaded
//
// Byte-level BPE models: with the cutting rules of GPT-2 (also RoBERTa, Whisper, ModernBERT), CL100K (Llama
// 3, GLM 4, Phi-4), Qwen 2 to 3.5, O200K (gpt-oss, Llama 4), tekken and Nemotron, Kimi K2, DeepSeek V3;
// without a normalizer or with NFC. SentencePiece, WordPiece and Unigram models are refused for now.
//
// # Guarantees
//
// For valid UTF-8 ids, ids with frame and decoded text equal those of Hugging Face tokenizers 0.23, which
// does not accept anything else. Bytes that are not UTF-8 are kept: each is cut like the character U+FFFD
// and encoded as itself, so decoding the ids one by one gives the bytes back; decoded text replaces them
// with U+FFFD. Nothing here panics on any text, ids or file. Memory during a load is bounded by a small
// multiple of the file's size, which is limited to [MaxFile], and 96 MB for what the largest id asks for.
//
// Not here yet: other model kinds, offsets after trimming, truncation and padding, a prefix cache, stop strings.
//
// A [Tokenizer] is immutable and safe for concurrent use. Encoding allocates nothing when dst has room and
// the tokenizer is warm; each goroutine that encodes at the same time holds about 1 MB of cache, which the
// tokenizer keeps, one per processor.
package tokenizers
