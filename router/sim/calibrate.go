// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weft-go/weft/router/internal/learn"
)

// measured are the times of a recorded request, in milliseconds.
type measured struct {
	worker         [2]uint64
	begin, end     float64 // of the response
	length, cached float64 // tokens of the prompt
	output         float64
	front, prefill float64 // before the prompt reached the engine, and to compute it
	step           float64 // between two tokens of the response
}

// Calibrate fits the costs of engines to a request trace of Dynamo with measured times (prefill_wait_time_ms, prefill_time_ms,
// avg_itl_ms). It returns conditions for [Options.Workload], such as "base=60.1,token=0.145", and the median relative errors of the
// fitted times to the first token and between tokens. Requests whose times are far from the others', such as the first one of an
// engine, are left out.
func Calibrate(trace []byte) (conditions string, first, between float64, err error) {
	t, err := parse(trace)
	if err != nil {
		return "", 0, 0, err
	}
	var list []measured
	for _, r := range t.requests {
		if m := r.measured; m.prefill > 0 && m.step > 0 {
			list = append(list, m)
		}
	}
	if len(list) < 8 {
		return "", 0, 0, fmt.Errorf("sim: calibrate: %d requests with measured times (want at least 8)", len(list))
	}
	// Package learn expects numbers of the size of prompts.
	const requests, tokens = 100, 4000
	var fronts, prefills, steps []learn.Sample
	for i, m := range list {
		n := m.length - m.cached
		fronts = append(fronts, learn.Sample{Work: learn.Work{1, m.length, 0}, Time: m.front})
		prefills = append(prefills, learn.Sample{Work: learn.Work{1, n, n * (m.cached + n/2)}, Time: m.prefill})
		batch, context := 0.0, 0.0
		for _, o := range list {
			if o.worker == m.worker {
				part := max(0, min(m.end, o.end)-max(m.begin, o.begin)) / (m.end - m.begin)
				batch += part
				context += part * (o.length + o.output/2)
			}
		}
		steps = append(steps, learn.Sample{Work: learn.Work{1, batch * requests, context * tokens}, Time: list[i].step})
	}
	front, _ := learn.Fit(fronts)
	prefill, keep := learn.Fit(prefills)
	step, _ := learn.Fit(steps)
	var errors [2][]float64
	for i, m := range list {
		if keep[i] {
			errors[0] = append(errors[0], math.Abs((front.Time(fronts[i].Work)+prefill.Time(prefills[i].Work))/(m.front+m.prefill)-1))
		}
		errors[1] = append(errors[1], math.Abs(step.Time(steps[i].Work)/m.step-1))
	}
	conditions = fmt.Sprintf("base=%.4g,token=%.4g,pair=%.4g,front=%.4g,step=%.4g,sequence=%.4g,context=%.4g",
		front[0]+prefill[0], prefill[1], prefill[2], front[1], step[0], step[1]*requests, step[2]*tokens)
	return conditions, median(errors[0]), median(errors[1]), nil
}

func median(x []float64) float64 {
	slices.SortFunc(x, cmp.Compare[float64])
	return x[len(x)/2]
}
