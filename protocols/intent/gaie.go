// SPDX-License-Identifier: Apache-2.0

package intent

// The endpoint picker of the Gateway API inference extension reads hints from headers. Its successor, the llm-d router,
// has headers with the prefix x-llm-d- since 0.8, and accepts the previous names as aliases (llm-d-router#1161). The
// router generates x-session-token, which names a pod; it is neither read nor sent here.

func (r *reader) llmdHeaders() {
	r.str(hintObjective, &r.in.Objective, r.header("x-llm-d-inference-objective", "x-gateway-inference-objective"))
	r.str(hintTenant, &r.in.Tenant, r.header("x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"))
	r.millis(hintTTFT, r.header("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"))
	r.millis(hintITL, r.header("x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"))
	if d, ok := r.header("x-llm-d-inference-ttl").duration(maxWait); ok && r.take(hintDeadline) {
		r.in.Deadline = d
	}
}

// pickerRows returns the rows of the endpoint picker with one set of header names, which it supports since a version.
func pickerRows(since, objective, tenant, ttft, itl string) []capability {
	return []capability{
		inHeaderRow(hintObjective, objective, goalOf).since(since), // its priority is configured on the server
		inHeaderRow(hintTenant, tenant, tenantOf).since(since),
		row(hintTTFT, ttft, func(s *sender) { s.milliseconds(ttft, s.in.TTFT) }).since(since),
		row(hintITL, itl, func(s *sender) { s.milliseconds(itl, s.in.ITL) }).since(since),
		inBodyRow(hintSalt, maxText, saltOf, "cache_salt"), // for the engine and for prefix scoring
		inHeaderRow(hintRequestID, "x-request-id", requestIDOf),
	}
}

var (
	gaieRows = pickerRows("", "x-gateway-inference-objective", "x-gateway-inference-fairness-id", "x-slo-ttft-ms", "x-slo-tpot-ms")
	llmdRows = append(
		pickerRows("0.8", "x-llm-d-inference-objective", "x-llm-d-inference-fairness-id", "x-llm-d-slo-ttft-ms", "x-llm-d-slo-tpot-ms"),
		row(hintDeadline, "x-llm-d-inference-ttl", func(s *sender) {
			if s.wait(s.in.Deadline) {
				s.header("x-llm-d-inference-ttl", s.in.Deadline.String())
			}
		}).since("0.11"), // can only shorten the configured limit
	)
)
