// SPDX-License-Identifier: Apache-2.0

// Package conformance checks what one module alone cannot: the programs in the READMEs against the Examples, and the modules
// against test data that is not part of the repository: corpora of peers'
// parsers and workloads with known answers. Its tests skip where the data is absent; WEFT_SHARED names the folder.
package conformance
