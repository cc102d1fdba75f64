// SPDX-License-Identifier: Apache-2.0

// Package conformance checks what no module can check alone: the programs in the READMEs against the Examples, and the
// modules against test data that is not part of the repository, corpora of peers' parsers and workloads with known
// answers. Tests skip where that data is absent; WEFT_SHARED names the folder, and WEFT_FAMILY the only family of parsers
// to test.
package conformance
