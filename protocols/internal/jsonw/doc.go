// SPDX-License-Identifier: Apache-2.0

// Package jsonw implements what the stream encoders share: JSON strings, raw JSON on one line, and UTF-8 that is
// received in pieces.
//
// All functions append to a slice of the caller and do not allocate otherwise. Text that is not UTF-8 is written as
// U+FFFD, once for each maximal subpart of an ill-formed sequence, as browsers, Python and Rust do (Unicode 16, section
// 3.9, "U+FFFD Substitution of Maximal Subparts"). The result of a [Carry] does not depend on how the bytes are split.
package jsonw
