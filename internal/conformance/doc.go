// SPDX-License-Identifier: Apache-2.0

// Package conformance checks what no module can check alone: the programs in the READMEs against the Examples, and the
// modules against test data that is not part of the repository, corpora of peers' parsers and workloads with known
// results. Tests skip if that data is absent. WEFT_SHARED names its directory, and WEFT_FAMILY restricts the tests to
// one family of parsers.
package conformance
