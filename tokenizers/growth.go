// SPDX-License-Identifier: Apache-2.0

package tokenizers

import "strings"

// This file bounds how much longer a text can become in the normalizer and in the decoder. Replacements that each double
// a text would otherwise turn ten letters into gigabytes.

// Limits of growth. Published files stay below 12 with replacements, which expand one character.
const (
	maxReplaced = 256  // by replacements alone
	maxGrowth   = 8192 // with Unicode normalization
	maxPrepend  = 256  // bytes
)

// growth describes how a step changes the length of a text.
type growth struct {
	old, to string
	any     bool    // the step can change any text, not only old, and make any text
	factor  float64 // length of what the step makes, divided by the length of what it is made of
	unicode bool    // the step is one of Unicode's or SentencePiece's own
}

func (r replacement) growth() growth {
	if r.x == nil {
		return growth{old: r.literal, to: r.content, factor: float64(len(r.content)) / float64(len(r.literal))}
	}
	n := len(r.content)
	if r.x.MatchesEmpty() {
		n++ // the text around the match is kept
	}
	return growth{any: true, factor: float64(n)}
}

// amplification returns an upper bound of the factor by which steps lengthen a text, and the same without the factors of
// Unicode's steps.
//
// A byte of the text is kept until the first step that replaces it. What this makes is replaced by a later step only if
// the two have a byte in common, so replacements of different characters do not multiply.
func amplification(steps []growth) (all, replaced float64) {
	a := make([][2]float64, len(steps))
	total := [2]float64{1, 1}
	for j := len(steps) - 1; j >= 0; j-- {
		later := [2]float64{1, 1}
		for k := j + 1; k < len(steps); k++ {
			if steps[j].any || steps[k].any || strings.ContainsAny(steps[k].old, steps[j].to) {
				later[0], later[1] = max(later[0], a[k][0]), max(later[1], a[k][1])
			}
		}
		f := steps[j].factor
		if steps[j].any {
			f = max(f, 1) // it need not change the text
		}
		a[j] = [2]float64{f * later[0], later[1] * f}
		if steps[j].unicode {
			a[j][1] = later[1]
		}
		total[0], total[1] = max(total[0], a[j][0]), max(total[1], a[j][1])
	}
	return total[0], total[1]
}

// checkGrowth returns an error if steps can lengthen a text too much.
func (p part) checkGrowth(steps []growth) error {
	all, replaced := amplification(steps)
	if replaced > maxReplaced {
		return p.fail(ErrLimit, "replacements lengthen a text up to %.3g times, the limit is %d", replaced, maxReplaced)
	}
	if all > maxGrowth {
		return p.fail(ErrLimit, "lengthens a text up to %.3g times, the limit is %d", all, maxGrowth)
	}
	return nil
}
