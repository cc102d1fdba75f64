// SPDX-License-Identifier: Apache-2.0

package kvindex

// Reference holds published figures of a workload.
type Reference struct {
	// Checksum is the sum over all queries, in file order with events applied, of every worker's matched depth. Four structures of
	// Dynamo agree on it.
	Checksum int64
	// The cost of Dynamo's compressed concurrent radix tree (Rust), measured with one thread, thread CPU time, median of 3, in 2026-11 on a
	// machine of the kind these workloads come from: research/kv_router.md, 3.3. Times of another run are for orientation only; bytes are
	// compared.
	NSPerEventBlock, USPerQuery, BytesPerResidency float64
}

// Names are the shared workloads, in the order of the table.
var Names = []string{
	"conv_n16_bs64", "conv_n64_bs64", "conv_n16_bs16", "conv_n64_bs16",
	"agent_n16_bs64", "agent_n64_bs64", "agent_n16_bs16", "agent_n64_bs16",
}

var references = map[string]Reference{
	"conv_n16_bs64":  {2301659, 98, 2.0, 306},
	"conv_n64_bs64":  {6962979, 135, 4.1, 114},
	"conv_n16_bs16":  {3092491, 152, 3.8, 148},
	"conv_n64_bs16":  {9155060, 100, 4.6, 84},
	"agent_n16_bs64": {108441077, 152, 3.1, 97},
	"agent_n64_bs64": {429273763, 186, 4.8, 65},
	"agent_n16_bs16": {132140642, 113, 5.7, 64},
	"agent_n64_bs16": {516321922, 90, 8.0, 50},
}

// ReferenceOf returns what is known about a workload; false if nothing is.
func ReferenceOf(workload string) (Reference, bool) {
	r, ok := references[workload]
	return r, ok
}
