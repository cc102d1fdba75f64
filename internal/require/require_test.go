// SPDX-License-Identifier: Apache-2.0

package require_test

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"runtime"
	"testing"

	"github.com/weft-go/weft/internal/require"
)

// recorder is a test that records its failure.
type recorder struct{ failure string }

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs f and returns its failure, "" if it passes.
func failure(f func(t require.TestingT)) string {
	var r recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&r)
	}()
	<-done
	return r.failure
}

type (
	word   string
	number int
	inner  struct{ n int }
	outer  struct {
		in   *inner
		list []int
	}
	careless struct{ n int }
)

func (careless) Equal(careless) bool { return true } // which assertions ignore

func TestAssertions(t *testing.T) {
	x, y := new(int), new(int)
	wrapped := fmt.Errorf("read: %w", io.EOF)
	path := &fs.PathError{Op: "open", Path: "x", Err: io.EOF}
	var nilSlice []int
	var nilError *fs.PathError
	type check = func(t require.TestingT)
	for _, tt := range []struct {
		name         string
		holds, fails []check
	}{
		{"Fail", nil, []check{
			func(t require.TestingT) { require.Fail(t, "broken") },
		}},
		{"True", []check{
			func(t require.TestingT) { require.True(t, true) },
		}, []check{
			func(t require.TestingT) { require.True(t, false) },
		}},
		{"False", []check{
			func(t require.TestingT) { require.False(t, false) },
		}, []check{
			func(t require.TestingT) { require.False(t, true) },
		}},
		{"Equal", []check{
			func(t require.TestingT) { require.Equal(t, 1, 1) },
			func(t require.TestingT) { require.Equal(t, "a", "a") },
			func(t require.TestingT) { require.Equal(t, nil, nil) },
			func(t require.TestingT) { require.Equal(t, []byte{1}, []byte{1}) },
			func(t require.TestingT) { require.Equal(t, &outer{&inner{1}, nil}, &outer{&inner{1}, nil}) },
			func(t require.TestingT) { require.Equal(t, map[string][]int{"a": {1}}, map[string][]int{"a": {1}}) },
		}, []check{
			func(t require.TestingT) { require.Equal(t, 1, 2) },
			func(t require.TestingT) { require.Equal(t, 1, int64(1)) },
			func(t require.TestingT) { require.Equal(t, "a", word("a")) },
			func(t require.TestingT) { require.Equal(t, nilSlice, []int{}) },
			func(t require.TestingT) { require.Equal(t, []byte(nil), []byte{}) },
			func(t require.TestingT) { require.Equal(t, nil, nilSlice) },
			func(t require.TestingT) { require.Equal(t, &outer{&inner{1}, nil}, &outer{&inner{2}, nil}) },
			func(t require.TestingT) { require.Equal(t, outer{list: nilSlice}, outer{list: []int{}}) },
			func(t require.TestingT) { require.Equal(t, careless{1}, careless{2}) },
			func(t require.TestingT) { require.Equal(t, math.NaN(), math.NaN()) },
			func(t require.TestingT) { require.Equal(t, map[string]int{"a": 1}, map[string]int{"a": 1, "b": 1}) },
		}},
		{"NotEqual", []check{
			func(t require.TestingT) { require.NotEqual(t, 1, 2) },
			func(t require.TestingT) { require.NotEqual(t, 1, int64(1)) },
			func(t require.TestingT) { require.NotEqual(t, nilSlice, []int{}) },
		}, []check{
			func(t require.TestingT) { require.NotEqual(t, 1, 1) },
			func(t require.TestingT) { require.NotEqual(t, []int{1}, []int{1}) },
		}},
		{"EqualValues", []check{
			func(t require.TestingT) { require.EqualValues(t, 1, 1) },
			func(t require.TestingT) { require.EqualValues(t, 1, int64(1)) },
			func(t require.TestingT) { require.EqualValues(t, 1, uint8(1)) },
			func(t require.TestingT) { require.EqualValues(t, "a", word("a")) },
			func(t require.TestingT) { require.EqualValues(t, 2, 2.0) },
			func(t require.TestingT) { require.EqualValues(t, []string{"a"}, []string{"a"}) },
		}, []check{
			func(t require.TestingT) { require.EqualValues(t, 1, int64(2)) },
			func(t require.TestingT) { require.EqualValues(t, 256, uint8(0)) },
			func(t require.TestingT) { require.EqualValues(t, -1, uint64(math.MaxUint64)) },
			func(t require.TestingT) { require.EqualValues(t, 1, 1.5) },
			func(t require.TestingT) { require.EqualValues(t, 97, "a") },
			func(t require.TestingT) { require.EqualValues(t, "a", word("b")) },
			func(t require.TestingT) { require.EqualValues(t, nil, 0) },
			func(t require.TestingT) { require.EqualValues(t, []int{1}, []int64{1}) },
		}},
		{"Same", []check{
			func(t require.TestingT) { require.Same(t, x, x) },
		}, []check{
			func(t require.TestingT) { require.Same(t, x, y) },
		}},
		{"IsType", []check{
			func(t require.TestingT) { require.IsType(t, 1, 2) },
			func(t require.TestingT) { require.IsType(t, path, nilError) },
		}, []check{
			func(t require.TestingT) { require.IsType(t, 1, int64(1)) },
			func(t require.TestingT) { require.IsType(t, path, io.EOF) },
			func(t require.TestingT) { require.IsType(t, 1, nil) },
		}},
		{"Nil", []check{
			func(t require.TestingT) { require.Nil(t, nil) },
			func(t require.TestingT) { require.Nil(t, nilSlice) },
			func(t require.TestingT) { require.Nil(t, nilError) },
		}, []check{
			func(t require.TestingT) { require.Nil(t, 0) },
			func(t require.TestingT) { require.Nil(t, []int{}) },
			func(t require.TestingT) { require.Nil(t, x) },
			func(t require.TestingT) { require.Nil(t, "") },
		}},
		{"NotNil", []check{
			func(t require.TestingT) { require.NotNil(t, 0) },
			func(t require.TestingT) { require.NotNil(t, []int{}) },
			func(t require.TestingT) { require.NotNil(t, x) },
		}, []check{
			func(t require.TestingT) { require.NotNil(t, nil) },
			func(t require.TestingT) { require.NotNil(t, nilSlice) },
			func(t require.TestingT) { require.NotNil(t, nilError) },
		}},
		{"Zero", []check{
			func(t require.TestingT) { require.Zero(t, nil) },
			func(t require.TestingT) { require.Zero(t, 0) },
			func(t require.TestingT) { require.Zero(t, "") },
			func(t require.TestingT) { require.Zero(t, word("")) },
			func(t require.TestingT) { require.Zero(t, outer{}) },
			func(t require.TestingT) { require.Zero(t, nilSlice) },
			func(t require.TestingT) { require.Zero(t, nilError) },
		}, []check{
			func(t require.TestingT) { require.Zero(t, 1) },
			func(t require.TestingT) { require.Zero(t, "a") },
			func(t require.TestingT) { require.Zero(t, []int{}) },
			func(t require.TestingT) { require.Zero(t, outer{list: []int{}}) },
			func(t require.TestingT) { require.Zero(t, x) },
			func(t require.TestingT) { require.Zero(t, map[int]int{}) },
		}},
		{"NotZero", []check{
			func(t require.TestingT) { require.NotZero(t, 1) },
			func(t require.TestingT) { require.NotZero(t, []int{}) },
		}, []check{
			func(t require.TestingT) { require.NotZero(t, 0) },
			func(t require.TestingT) { require.NotZero(t, nil) },
			func(t require.TestingT) { require.NotZero(t, outer{}) },
		}},
		{"Empty", []check{
			func(t require.TestingT) { require.Empty(t, nil) },
			func(t require.TestingT) { require.Empty(t, "") },
			func(t require.TestingT) { require.Empty(t, 0) },
			func(t require.TestingT) { require.Empty(t, []int{}) },
			func(t require.TestingT) { require.Empty(t, nilSlice) },
			func(t require.TestingT) { require.Empty(t, map[int]int{}) },
			func(t require.TestingT) { require.Empty(t, x) },
			func(t require.TestingT) { require.Empty(t, outer{}) },
			func(t require.TestingT) { require.Empty(t, nilError) },
		}, []check{
			func(t require.TestingT) { require.Empty(t, "a") },
			func(t require.TestingT) { require.Empty(t, 1) },
			func(t require.TestingT) { require.Empty(t, []int{0}) },
			func(t require.TestingT) { require.Empty(t, map[int]int{0: 0}) },
			func(t require.TestingT) { require.Empty(t, outer{list: []int{}}) },
			func(t require.TestingT) { require.Empty(t, &outer{list: []int{1}}) },
			func(t require.TestingT) { require.Empty(t, io.EOF) },
		}},
		{"NotEmpty", []check{
			func(t require.TestingT) { require.NotEmpty(t, "a") },
			func(t require.TestingT) { require.NotEmpty(t, []int{0}) },
			func(t require.TestingT) { require.NotEmpty(t, 1) },
		}, []check{
			func(t require.TestingT) { require.NotEmpty(t, "") },
			func(t require.TestingT) { require.NotEmpty(t, []int{}) },
			func(t require.TestingT) { require.NotEmpty(t, nil) },
			func(t require.TestingT) { require.NotEmpty(t, x) },
		}},
		{"Len", []check{
			func(t require.TestingT) { require.Len(t, "abc", 3) },
			func(t require.TestingT) { require.Len(t, []int{1}, 1) },
			func(t require.TestingT) { require.Len(t, [2]int{}, 2) },
			func(t require.TestingT) { require.Len(t, map[int]int{}, 0) },
			func(t require.TestingT) { require.Len(t, nilSlice, 0) },
		}, []check{
			func(t require.TestingT) { require.Len(t, "abc", 2) },
			func(t require.TestingT) { require.Len(t, []int{1}, 0) },
			func(t require.TestingT) { require.Len(t, nil, 0) },
			func(t require.TestingT) { require.Len(t, 3, 3) },
		}},
		{"Contains", []check{
			func(t require.TestingT) { require.Contains(t, "abc", "b") },
			func(t require.TestingT) { require.Contains(t, word("abc"), "b") },
			func(t require.TestingT) { require.Contains(t, []int{1, 2}, 2) },
			func(t require.TestingT) { require.Contains(t, [][]int{{1}, {2}}, []int{2}) },
			func(t require.TestingT) { require.Contains(t, map[string]int{"a": 1}, "a") },
		}, []check{
			func(t require.TestingT) { require.Contains(t, "abc", "d") },
			func(t require.TestingT) { require.Contains(t, "abc", 1) },
			func(t require.TestingT) { require.Contains(t, []int{1, 2}, 3) },
			func(t require.TestingT) { require.Contains(t, []int{1}, int64(1)) },
			func(t require.TestingT) { require.Contains(t, map[string]int{"a": 1}, "b") },
			func(t require.TestingT) { require.Contains(t, map[string]int{"a": 1}, 1) },
			func(t require.TestingT) { require.Contains(t, nil, 1) },
			func(t require.TestingT) { require.Contains(t, 3, 3) },
		}},
		{"NotContains", []check{
			func(t require.TestingT) { require.NotContains(t, "abc", "d") },
			func(t require.TestingT) { require.NotContains(t, []int{1, 2}, 3) },
			func(t require.TestingT) { require.NotContains(t, map[string]int{"a": 1}, "b") },
		}, []check{
			func(t require.TestingT) { require.NotContains(t, "abc", "b") },
			func(t require.TestingT) { require.NotContains(t, []int{1, 2}, 2) },
			func(t require.TestingT) { require.NotContains(t, map[string]int{"a": 1}, "a") },
			func(t require.TestingT) { require.NotContains(t, nil, 1) },
			func(t require.TestingT) { require.NotContains(t, "abc", 1) },
		}},
		{"ElementsMatch", []check{
			func(t require.TestingT) { require.ElementsMatch(t, []int{1, 2, 2}, []int{2, 1, 2}) },
			func(t require.TestingT) { require.ElementsMatch(t, nilSlice, []int{}) },
		}, []check{
			func(t require.TestingT) { require.ElementsMatch(t, []int{1, 2, 2}, []int{2, 1, 1}) },
			func(t require.TestingT) { require.ElementsMatch(t, []int{1}, []int{1, 1}) },
			func(t require.TestingT) { require.ElementsMatch(t, []int{1, 1}, []int{1}) },
			func(t require.TestingT) { require.ElementsMatch(t, 1, 1) },
		}},
		{"Regexp", []check{
			func(t require.TestingT) { require.Regexp(t, "^a+$", "aaa") },
			func(t require.TestingT) { require.Regexp(t, regexp.MustCompile("b"), "abc") },
		}, []check{
			func(t require.TestingT) { require.Regexp(t, "^a+$", "aab") },
			func(t require.TestingT) { require.Regexp(t, regexp.MustCompile("d"), "abc") },
		}},
		{"JSONEq", []check{
			func(t require.TestingT) { require.JSONEq(t, `{"a":1,"b":[2]}`, `{"b": [2.0], "a": 1}`) },
		}, []check{
			func(t require.TestingT) { require.JSONEq(t, `{"a":1}`, `{"a":2}`) },
			func(t require.TestingT) { require.JSONEq(t, `{"a":1}`, `{"a":1`) },
			func(t require.TestingT) { require.JSONEq(t, `{`, `{}`) },
			func(t require.TestingT) { require.JSONEq(t, `{"a":1}`, `{}`) },
			func(t require.TestingT) { require.JSONEq(t, `null`, `{}`) },
		}},
		{"Greater", []check{
			func(t require.TestingT) { require.Greater(t, 2, 1) },
			func(t require.TestingT) { require.Greater(t, "b", "a") },
		}, []check{
			func(t require.TestingT) { require.Greater(t, 1, 1) },
			func(t require.TestingT) { require.Greater(t, 1, 2) },
			func(t require.TestingT) { require.Greater(t, math.NaN(), 0) },
		}},
		{"GreaterOrEqual", []check{
			func(t require.TestingT) { require.GreaterOrEqual(t, 1, 1) },
		}, []check{
			func(t require.TestingT) { require.GreaterOrEqual(t, 1, 2) },
			func(t require.TestingT) { require.GreaterOrEqual(t, math.NaN(), 0) },
		}},
		{"Less", []check{
			func(t require.TestingT) { require.Less(t, 1, 2) },
		}, []check{
			func(t require.TestingT) { require.Less(t, 1, 1) },
			func(t require.TestingT) { require.Less(t, 2, 1) },
			func(t require.TestingT) { require.Less(t, math.NaN(), 0) },
		}},
		{"LessOrEqual", []check{
			func(t require.TestingT) { require.LessOrEqual(t, 1, 1) },
		}, []check{
			func(t require.TestingT) { require.LessOrEqual(t, 2, 1) },
			func(t require.TestingT) { require.LessOrEqual(t, math.NaN(), 0) },
		}},
		{"Positive", []check{
			func(t require.TestingT) { require.Positive(t, 1) },
			func(t require.TestingT) { require.Positive(t, number(1)) },
			func(t require.TestingT) { require.Positive(t, 0.5) },
		}, []check{
			func(t require.TestingT) { require.Positive(t, 0) },
			func(t require.TestingT) { require.Positive(t, -1) },
			func(t require.TestingT) { require.Positive(t, math.NaN()) },
		}},
		{"InDelta", []check{
			func(t require.TestingT) { require.InDelta(t, 1, 1.25, 0.25) },
			func(t require.TestingT) { require.InDelta(t, uint8(1), 1, 0) },
		}, []check{
			func(t require.TestingT) { require.InDelta(t, 1, 1.5, 0.25) },
			func(t require.TestingT) { require.InDelta(t, 1.5, 1, 0.25) },
			func(t require.TestingT) { require.InDelta(t, math.NaN(), 1, 1) },
			func(t require.TestingT) { require.InDelta(t, "1", 1, 1) },
		}},
		{"NoError", []check{
			func(t require.TestingT) { require.NoError(t, nil) },
		}, []check{
			func(t require.TestingT) { require.NoError(t, io.EOF) },
			func(t require.TestingT) { require.NoError(t, nilError) },
		}},
		{"Error", []check{
			func(t require.TestingT) { require.Error(t, io.EOF) },
		}, []check{
			func(t require.TestingT) { require.Error(t, nil) },
		}},
		{"EqualError", []check{
			func(t require.TestingT) { require.EqualError(t, wrapped, "read: EOF") },
		}, []check{
			func(t require.TestingT) { require.EqualError(t, wrapped, "EOF") },
			func(t require.TestingT) { require.EqualError(t, nil, "") },
		}},
		{"ErrorContains", []check{
			func(t require.TestingT) { require.ErrorContains(t, wrapped, "EOF") },
		}, []check{
			func(t require.TestingT) { require.ErrorContains(t, wrapped, "eof") },
			func(t require.TestingT) { require.ErrorContains(t, nil, "") },
		}},
		{"ErrorIs", []check{
			func(t require.TestingT) { require.ErrorIs(t, wrapped, io.EOF) },
		}, []check{
			func(t require.TestingT) { require.ErrorIs(t, wrapped, io.ErrUnexpectedEOF) },
			func(t require.TestingT) { require.ErrorIs(t, nil, io.EOF) },
		}},
		{"NotErrorIs", []check{
			func(t require.TestingT) { require.NotErrorIs(t, wrapped, io.ErrUnexpectedEOF) },
			func(t require.TestingT) { require.NotErrorIs(t, nil, io.EOF) },
		}, []check{
			func(t require.TestingT) { require.NotErrorIs(t, wrapped, io.EOF) },
		}},
		{"ErrorAs", []check{
			func(t require.TestingT) { require.ErrorAs(t, path, &nilError) },
		}, []check{
			func(t require.TestingT) { require.ErrorAs(t, wrapped, &nilError) },
			func(t require.TestingT) { require.ErrorAs(t, nil, &nilError) },
		}},
		{"Panics", []check{
			func(t require.TestingT) { require.Panics(t, func() { panic(1) }) },
		}, []check{
			func(t require.TestingT) { require.Panics(t, func() {}) },
		}},
	} {
		for i, f := range tt.holds {
			if got := failure(f); got != "" {
				t.Errorf("%s %d fails: %s", tt.name, i, got)
			}
		}
		for i, f := range tt.fails {
			if failure(f) == "" {
				t.Errorf("%s %d does not fail", tt.name, i)
			}
		}
	}
}

func TestMessages(t *testing.T) {
	for _, tt := range []struct {
		want string
		f    func(t require.TestingT)
	}{
		{"got false, want true", func(t require.TestingT) { require.True(t, false) }},
		{"50%: got false, want true", func(t require.TestingT) { require.True(t, false, "50%") }},
		{"row 3: got false, want true", func(t require.TestingT) { require.True(t, false, "row %d", 3) }},
		{"{n:1}: got false, want true", func(t require.TestingT) { require.True(t, false, inner{1}) }},
		{`got length 2, want 1: []string{"a", "b"}`, func(t require.TestingT) { require.Len(t, []string{"a", "b"}, 1) }},
		{`got []int{1}, want it empty`, func(t require.TestingT) { require.Empty(t, []int{1}) }},
		{`got "a\n", want it empty`, func(t require.TestingT) { require.Empty(t, []byte("a\n")) }},
		{`"a" does not contain "b"`, func(t require.TestingT) { require.Contains(t, "a", "b") }},
		{`got error EOF`, func(t require.TestingT) { require.NoError(t, io.EOF) }},
		{"not equal:\ngot  require_test.careless require_test.careless{n:2}\nwant require_test.careless require_test.careless{n:1}",
			func(t require.TestingT) { require.Equal(t, careless{1}, careless{2}) }},
	} {
		if got := failure(tt.f); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestPanicsEnds checks that a test which ends inside of Panics is not mistaken for a panic.
func TestPanicsEnds(t *testing.T) {
	got := failure(func(t require.TestingT) {
		require.Panics(t, func() { t.Fatalf("inside") })
	})
	if got != "inside" {
		t.Errorf("got %q", got)
	}
}
