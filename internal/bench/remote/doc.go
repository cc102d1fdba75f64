// SPDX-License-Identifier: Apache-2.0

// Package remote drives libraries of others, each in a process of its own, so that one that panics or never ends takes
// nothing else along, and each is charged its own CPU time.
//
// A process reads requests and writes replies, one JSON document a line, in turn. [StartHF] starts Hugging Face's own Rust
// code through npm's tokenizers; internal/bench/peers is the process for Go libraries.
//
//	{"op":"load","file":"…/tokenizer.json"}                → {"cpu_us":283151}
//	{"op":"text","name":"code","docs":["…","…"]}           → {}
//	{"op":"encode","name":"code","way":"each","reps":2}    → {"cpu_us":30120,"tokens":34212}
//	{"op":"decode","name":"code","reps":2}                 → {"cpu_us":6010,"tokens":34212}
//	{"op":"idle","reps":1000}                              → {"cpu_us":90000}: calls with nothing to do
//	{"op":"ids","docs":["…"]}                              → {"ids":[[1,2]]}
//	{"op":"full","docs":["…"]}                             → {"full":[{"ids":…,"framed":…,"offsets":…,"dec":…,"skip":…}]}
//	{"op":"text of","lists":[[1,2]],"skip":true}           → {"texts":["…"]}
//
// [StartDynamo] starts the indexes of KV caches in Dynamo's crate, with files of examples/kvbench/kvw:
//
//	{"op":"load","file":"….kvw"}                           → {}
//	{"op":"events","name":"radix"}                         → {"ns":187163854}: CPU time of all events alone
//	{"op":"queries","name":"crtc"}                         → {"sums":[0,8],"times":[310,520]}: of each query, depths and nanoseconds
//
// A reply with "error" reports a failure; the process continues.
package remote
