// SPDX-License-Identifier: Apache-2.0

package jsonfloat

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		s    string
		want float64
		ok   bool
	}{
		{"0", 0, true}, {"-0", math.Copysign(0, -1), true}, {"-0.0", math.Copysign(0, -1), true}, {"12", 12, true}, {"-3.5", -3.5, true},
		{"1e2", 100, true}, {"1E+2", 100, true}, {"25e-1", 2.5, true}, {"0.1", 0.1, true},
		{"18446744073709551615", 18446744073709551615, true},
		{"18446744073709551616", 18446744073709551616, true},
		{"100000000000000000000000", 1e23, true},
		{"0.10000000000000000000000000000001", 0.1, true},
		{"1e308", 1e308, true}, {"1e309", 0, false}, {"1e99999999999999999999", 0, false},
		{"1e-99999999999999999999", 0, true}, {"0e99999999999", 0, true}, {"-1e-400", math.Copysign(0, -1), true},
		{"", 0, false}, {"-", 0, false}, {".5", 0, false}, {"5.", 0, false}, {"1e", 0, false}, {"01", 0, false},
		{"1x", 0, false}, {"+1", 0, false}, {"NaN", 0, false}, {"1e+", 0, false},
		// Off by a unit in the last place, as in the reference: scores of T5.
		{"-2.0122928619384766", -2.012292861938477, true},
		{"-3.9598512649536133", -3.9598512649536137, true},
	} {
		got, ok := Parse(c.s)
		if ok != c.ok || ok && math.Float64bits(got) != math.Float64bits(c.want) {
			t.Errorf("%q: %v %t, want %v %t", c.s, got, ok, c.want, c.ok)
		}
	}
}

// The result is next to the right one, and the right one for numbers that are short.
func TestParseRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	other := 0
	for range 20000 {
		x := -20 * r.Float64()
		got, ok := Parse(strconv.AppendFloat(nil, x, 'g', -1, 64))
		if d := int64(math.Float64bits(got) - math.Float64bits(x)); !ok || d < -1 || d > 1 {
			t.Fatalf("%v read as %v", x, got)
		}
		if got != x {
			other++
		}
		short := strconv.FormatFloat(x, 'f', 10, 64)
		want, err := strconv.ParseFloat(short, 64)
		if got, ok := Parse(short); err != nil || !ok || got != want {
			t.Fatalf("%s read as %v", short, got)
		}
	}
	if other == 0 {
		t.Error("no number is off; there is nothing to do for this package")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-12.5e3")
	f.Add("123456789012345678901234567890.5")
	f.Add("1.79769313486231581e308")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := Parse(s)
		if !ok {
			return
		}
		want, err := strconv.ParseFloat(s, 64)
		if math.IsInf(want, 0) { // just above the largest number; being off by a unit, as the reference, can mean to be below it
			want, err = math.Copysign(math.MaxFloat64, want), nil
		}
		if err != nil || math.Abs(got-want) > math.Abs(want)*1e-14+1e-300 {
			t.Errorf("%q read as %v, want %v %v", s, got, want, err)
		}
	})
}
