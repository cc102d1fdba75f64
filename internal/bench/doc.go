// SPDX-License-Identifier: Apache-2.0

// Package bench compares weft's parsers with Ollama's and with a minimal machine, on workloads with known results.
//
// A [Sample] is one model output with its expected result and three chunkings. A [Runner] is one parser behind one
// interface. [Measure] first checks what every runner makes of every sample, then times those that were right, in turn,
// and checks again: a wrong result has no time. [Floor] runs the minimal machine, which is a program of its own.
//
// Times are CPU time of the process, garbage collection included, not wall time: the machines this runs on are shared.
// Compare times of one run only; between runs compare ratios.
//
// The module needs Ollama and is not part of the workspace; see README.md.
package bench
