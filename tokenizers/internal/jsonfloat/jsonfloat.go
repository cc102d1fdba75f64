// SPDX-License-Identifier: Apache-2.0

// Package jsonfloat reads numbers as the reference does. Hugging Face tokenizers reads JSON with serde_json
// 1.0 without its feature float_roundtrip, whose result can be off by a unit in the last place. Scores of a
// Unigram model are sums of such numbers, and where two paths hold the same tokens in different order the
// last place decides. A quarter of the scores of T5 and XLNet differ from those that strconv.ParseFloat reads.
package jsonfloat

import "math"

// Parse returns the value of the JSON number s. It reports false if s is not a number or too large. It does not
// allocate.
func Parse[T []byte | string](s T) (float64, bool) {
	i := 0
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		i++
	}
	digit := func() bool { return i < len(s) && s[i]-'0' <= 9 }
	if !digit() {
		return 0, false
	}
	// The number is sum · 10^exp. Digits that do not fit into 64 bits are left out.
	var sum uint64
	exp, full := 0, false
	zero := s[i] == '0'
	for n := 0; digit(); i++ {
		if n++; zero && n > 1 {
			return 0, false
		}
		if full = full || over(sum, s[i]); full {
			exp++
		} else {
			sum = sum*10 + uint64(s[i]-'0')
		}
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digit() {
			return 0, false
		}
		for full = false; digit(); i++ {
			if full = full || over(sum, s[i]); !full {
				sum = sum*10 + uint64(s[i]-'0')
				exp--
			}
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		down := i < len(s) && s[i] == '-'
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		if !digit() {
			return 0, false
		}
		const most = math.MaxInt32
		e := 0
		for ; digit(); i++ {
			e = min(e*10+int(s[i]-'0'), most/10-9)
		}
		if down {
			e = -e
		}
		exp += e
	}
	if i != len(s) {
		return 0, false
	}
	f := float64(sum)
	for exp < -308 && f != 0 {
		f /= 1e308
		exp += 308
	}
	switch {
	case f == 0:
	case exp > 308:
		return 0, false
	case exp >= 0:
		if f *= pow10[exp]; math.IsInf(f, 0) {
			return 0, false
		}
	default:
		f /= pow10[-exp]
	}
	if negative {
		f = -f
	}
	return f, true
}

// over reports whether one more digit does not fit.
func over(sum uint64, c byte) bool {
	const most = math.MaxUint64
	return sum > most/10 || sum == most/10 && uint64(c-'0') > most%10
}

// pow10[n] is the float64 nearest to 10^n.
var pow10 = func() (t [309]float64) {
	for n := range t {
		t[n] = math.Pow10(n)
	}
	return t
}()
