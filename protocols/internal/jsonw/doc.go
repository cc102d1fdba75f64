// SPDX-License-Identifier: Apache-2.0

// Package jsonw holds what the stream encoders share: JSON strings, raw JSON on one line, and UTF-8 that arrives in
// pieces.
//
// Everything appends to a slice of the caller and allocates nothing else once that slice has room. Text that is not
// UTF-8 is written as U+FFFD, one for each maximal subpart of an ill-formed sequence, as browsers, Python and Rust do
// (Unicode 16, section 3.9, "U+FFFD Substitution of Maximal Subparts"). A [Carry] gives the same result for every
// split of the same bytes.
package jsonw
