// SPDX-License-Identifier: Apache-2.0

// Package seam connects package block to the packages that decode and encode requests of one API.
//
// Requests, turns and blocks are public types of package block, which owns their hidden parts: the document that a
// request was decoded from, the position of a block in it, and the parts of a detached block that no field holds. The
// packages chat, completions, responses, messages and preamble need those parts, and block needs the API's
// implementation of reading and writing a body, a [Dialect]. Both use types of package jsonscan, which users cannot
// import. None of this should be visible to users.
//
// Exported methods of block that only this module uses would be visible. Types in an internal package, with aliases in
// block, would hide their documentation. Therefore the connection is here, below block: block initializes an [Access]
// and stores it ([Lend]); package codec, which imports block, loads it ([Borrow]) and wraps it in ordinary functions.
// This package cannot name block's types, so they are type parameters, in the same order everywhere. The compiler
// checks each side against the declarations here. A program that imports codec checks at initialization that both sides
// use the same types. Every test of an API package therefore checks it.
//
// The cost is a call through a function value, too little to measure in a benchmark of decoding.
package seam
