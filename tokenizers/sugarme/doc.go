// SPDX-License-Identifier: Apache-2.0

// Package sugarme serves tokenizer.json files that package tokenizers refuses, through github.com/sugarme/tokenizer,
// isolated from failures, and only if the ids can be verified.
//
// That engine is not exact. Against Hugging Face's own output it loads none of the agent families and gives the right
// ids for the whole of none of our vector sets (the README has the numbers). So this adapter is a separate module, is
// off unless [Options.Enable] is set, and checks every file on load:
//
//	native loads the file?  every probe must get the same ids from both        else ErrDisagrees
//	vectors given?          every vector must get its ids                      else ErrDisagrees
//	neither?                refused                                            ErrUnverified
//
// # The fence
//
//   - A panic inside the engine is an error (ErrEngine). So is its log.Fatal, which would end the process: while a call
//     runs, the standard logger's output is wrapped by a writer that drops what the engine logs, converts its log.Fatal
//     to an error and passes everything else on. A program that sets the logger's output itself at that moment keeps
//     what it set.
//   - Texts are limited to 16 KiB and calls to 2 seconds: some of its paths cost the square of the length or never end.
//     A call that exceeds its time continues in its goroutine, which cannot be stopped; until it ends, other calls wait
//     their own time and fail with context.DeadlineExceeded. There is at most one such goroutine for a tokenizer.
//   - The engine's caches are not safe for concurrent use, so calls run one at a time.
//   - Texts that are not UTF-8 are refused, as Hugging Face does.
//
// A fatal error of the Go runtime (memory exhausted, say) is beyond any fence. The engine prints a line to
// standard output before it panics on a BPE model without a token for a letter; nothing here can stop that.
//
// Only encoding without added special tokens is offered: decoders and post-processors are not covered by the check.
// On 32-bit systems the engine does not compile, and loading returns tokenizers.ErrUnsupported.
package sugarme
