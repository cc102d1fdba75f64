// SPDX-License-Identifier: Apache-2.0

// Package require contains the assertions of this repository's tests. Each stops the test if it does not hold.
//
// Names, parameters and meaning are those of testify's package of the same name, of which this is a part. Testify itself
// links net/http and a YAML parser into each test binary, which costs more CPU time than most tests here. Assertions take
// a [TestingT] instead of a testing.TB because property tests do not have one.
//
// The last parameters of each assertion, msgAndArgs, describe it in the failure: a format and its arguments, or one value.
package require

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestingT is a test, benchmark, fuzz target or property.
type TestingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fail stops the test. msgAndArgs precedes the failure.
func fail(t TestingT, msgAndArgs []any, format string, args ...any) {
	t.Helper()
	failure := fmt.Sprintf(format, args...)
	switch len(msgAndArgs) {
	case 0:
	case 1:
		failure = fmt.Sprintf("%+v: %s", msgAndArgs[0], failure)
	default:
		failure = fmt.Sprintf(msgAndArgs[0].(string), msgAndArgs[1:]...) + ": " + failure
	}
	t.Fatalf("%s", failure)
}

// Fail stops the test.
func Fail(t TestingT, failure string, msgAndArgs ...any) {
	t.Helper()
	fail(t, msgAndArgs, "%s", failure)
}

// True asserts that ok.
func True(t TestingT, ok bool, msgAndArgs ...any) {
	if !ok {
		t.Helper()
		fail(t, msgAndArgs, "got false, want true")
	}
}

// False asserts that not ok.
func False(t TestingT, ok bool, msgAndArgs ...any) {
	if ok {
		t.Helper()
		fail(t, msgAndArgs, "got true, want false")
	}
}

// Equal asserts that want and got have the same type and are deeply equal. A nil slice differs from an empty one.
func Equal(t TestingT, want, got any, msgAndArgs ...any) {
	if !reflect.DeepEqual(want, got) {
		t.Helper()
		fail(t, msgAndArgs, "not equal:\n%s", diff(want, got))
	}
}

// NotEqual asserts the opposite of [Equal].
func NotEqual(t TestingT, unwanted, got any, msgAndArgs ...any) {
	if reflect.DeepEqual(unwanted, got) {
		t.Helper()
		fail(t, msgAndArgs, "got %s, want another value", show(got))
	}
}

// EqualValues is like [Equal], except that the types may differ if both values are the same in either.
func EqualValues(t TestingT, want, got any, msgAndArgs ...any) {
	if !reflect.DeepEqual(want, got) && !sameValue(want, got) {
		t.Helper()
		fail(t, msgAndArgs, "not equal in value:\n%s", diff(want, got))
	}
}

// sameValue reports whether a and b, converted to the type of the other, are equal.
func sameValue(a, b any) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	number := func(v reflect.Value) bool { return v.CanInt() || v.CanUint() || v.CanFloat() }
	if number(x) != number(y) || !x.CanConvert(y.Type()) || !y.CanConvert(x.Type()) {
		return false
	}
	if negative := func(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0 }; negative(x) != negative(y) {
		return false // conversion between signed and unsigned integers wraps
	}
	return reflect.DeepEqual(x.Convert(y.Type()).Interface(), b) && reflect.DeepEqual(y.Convert(x.Type()).Interface(), a)
}

// Same asserts that want and got are pointers to the same variable.
func Same[T any](t TestingT, want, got *T, msgAndArgs ...any) {
	if want != got {
		t.Helper()
		fail(t, msgAndArgs, "got %p %s, want %p %s", got, show(got), want, show(want))
	}
}

// IsType asserts that got has the type of want.
func IsType(t TestingT, want, got any, msgAndArgs ...any) {
	if reflect.TypeOf(want) != reflect.TypeOf(got) {
		t.Helper()
		fail(t, msgAndArgs, "got a %T, want a %T: %s", got, want, show(got))
	}
}

// Nil asserts that v is nil or contains a nil pointer, slice, map, channel, function or interface.
func Nil(t TestingT, v any, msgAndArgs ...any) {
	if !isNil(v) {
		t.Helper()
		fail(t, msgAndArgs, "got %s, want nil", show(v))
	}
}

// NotNil asserts the opposite of [Nil].
func NotNil(t TestingT, v any, msgAndArgs ...any) {
	if isNil(v) {
		t.Helper()
		fail(t, msgAndArgs, "got a nil %T", v)
	}
}

func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.UnsafePointer:
		return r.IsNil()
	}
	return false
}

// Zero asserts that v is nil or the zero value of its type. An empty slice is not, unless it is nil.
func Zero(t TestingT, v any, msgAndArgs ...any) {
	if !isZero(v) {
		t.Helper()
		fail(t, msgAndArgs, "got %s, want a zero value", show(v))
	}
}

// NotZero asserts the opposite of [Zero].
func NotZero(t TestingT, v any, msgAndArgs ...any) {
	if isZero(v) {
		t.Helper()
		fail(t, msgAndArgs, "got the zero value of %T", v)
	}
}

func isZero(v any) bool {
	return v == nil || reflect.DeepEqual(v, reflect.Zero(reflect.TypeOf(v)).Interface())
}

// Empty asserts that v is nil, a slice, map or channel of length 0, a pointer to an empty value, or another zero value.
func Empty(t TestingT, v any, msgAndArgs ...any) {
	if !isEmpty(v) {
		t.Helper()
		fail(t, msgAndArgs, "got %s, want it empty", show(v))
	}
}

// NotEmpty asserts the opposite of [Empty].
func NotEmpty(t TestingT, v any, msgAndArgs ...any) {
	if isEmpty(v) {
		t.Helper()
		fail(t, msgAndArgs, "got an empty %T", v)
	}
}

func isEmpty(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Map, reflect.Chan:
		return r.Len() == 0
	case reflect.Pointer:
		return r.IsNil() || isEmpty(r.Elem().Interface())
	}
	return isZero(v)
}

// Len asserts that v, a string, slice, array, map or channel, has length n.
func Len(t TestingT, v any, n int, msgAndArgs ...any) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map, reflect.Chan:
		if r.Len() != n {
			t.Helper()
			fail(t, msgAndArgs, "got length %d, want %d: %s", r.Len(), n, show(v))
		}
	default:
		t.Helper()
		fail(t, msgAndArgs, "a %T has no length, want %d: %s", v, n, show(v))
	}
}

// Contains asserts that v is a string with the substring part, a slice or array with the element part, or a map with the
// key part.
func Contains(t TestingT, v, part any, msgAndArgs ...any) {
	if ok, known := contains(v, part); !ok || !known {
		t.Helper()
		fail(t, msgAndArgs, "%s does not contain %s", show(v), show(part))
	}
}

// NotContains asserts that v, a string, slice, array or map, does not contain part.
func NotContains(t TestingT, v, part any, msgAndArgs ...any) {
	switch ok, known := contains(v, part); {
	case ok:
		t.Helper()
		fail(t, msgAndArgs, "%s contains %s", show(v), show(part))
	case !known:
		t.Helper()
		fail(t, msgAndArgs, "a %T cannot contain a %T", v, part)
	}
}

// contains reports whether v contains part, and whether a value of its type could.
func contains(v, part any) (ok, known bool) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		p := reflect.ValueOf(part)
		if p.Kind() != reflect.String {
			return false, false
		}
		return strings.Contains(r.String(), p.String()), true
	case reflect.Map:
		for _, key := range r.MapKeys() {
			if reflect.DeepEqual(key.Interface(), part) {
				return true, true
			}
		}
		return false, true
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			if reflect.DeepEqual(r.Index(i).Interface(), part) {
				return true, true
			}
		}
		return false, true
	}
	return false, false
}

// ElementsMatch asserts that want and got, slices or arrays, have the same elements in any order, each as often.
func ElementsMatch(t TestingT, want, got any, msgAndArgs ...any) {
	t.Helper()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for _, v := range []reflect.Value{w, g} {
		if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
			fail(t, msgAndArgs, "a %s has no elements", k)
		}
	}
	used := make([]bool, g.Len())
	equal := w.Len() == g.Len()
next:
	for i := 0; equal && i < w.Len(); i++ {
		for j := range used {
			if !used[j] && reflect.DeepEqual(w.Index(i).Interface(), g.Index(j).Interface()) {
				used[j] = true
				continue next
			}
		}
		equal = false
	}
	if !equal {
		fail(t, msgAndArgs, "elements differ:\n%s", diff(want, got))
	}
}

// Regexp asserts that pattern, a *regexp.Regexp or its source, matches in text.
func Regexp(t TestingT, pattern, text any, msgAndArgs ...any) {
	t.Helper()
	re, ok := pattern.(*regexp.Regexp)
	if !ok {
		re = regexp.MustCompile(fmt.Sprint(pattern))
	}
	if s := fmt.Sprint(text); !re.MatchString(s) {
		fail(t, msgAndArgs, "%q does not match %s", s, re)
	}
}

// JSONEq asserts that want and got are JSON values that decode to equal Go values.
func JSONEq(t TestingT, want, got string, msgAndArgs ...any) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		fail(t, msgAndArgs, "wanted value is not JSON: %v: %s", err, want)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		fail(t, msgAndArgs, "got no JSON: %v: %s", err, got)
	}
	if !reflect.DeepEqual(w, g) {
		fail(t, msgAndArgs, "JSON differs:\n%s", diff(w, g))
	}
}

// Greater asserts that a > b.
func Greater[T cmp.Ordered](t TestingT, a, b T, msgAndArgs ...any) {
	if !(a > b) {
		t.Helper()
		fail(t, msgAndArgs, "got %v, want more than %v", a, b)
	}
}

// GreaterOrEqual asserts that a >= b.
func GreaterOrEqual[T cmp.Ordered](t TestingT, a, b T, msgAndArgs ...any) {
	if !(a >= b) {
		t.Helper()
		fail(t, msgAndArgs, "got %v, want at least %v", a, b)
	}
}

// Less asserts that a < b.
func Less[T cmp.Ordered](t TestingT, a, b T, msgAndArgs ...any) {
	if !(a < b) {
		t.Helper()
		fail(t, msgAndArgs, "got %v, want less than %v", a, b)
	}
}

// LessOrEqual asserts that a <= b.
func LessOrEqual[T cmp.Ordered](t TestingT, a, b T, msgAndArgs ...any) {
	if !(a <= b) {
		t.Helper()
		fail(t, msgAndArgs, "got %v, want at most %v", a, b)
	}
}

// Positive asserts that v > 0.
func Positive[T cmp.Ordered](t TestingT, v T, msgAndArgs ...any) {
	var zero T
	if !(v > zero) {
		t.Helper()
		fail(t, msgAndArgs, "got %v, want it positive", v)
	}
}

// InDelta asserts that want and got, numbers, differ by at most delta.
func InDelta(t TestingT, want, got any, delta float64, msgAndArgs ...any) {
	t.Helper()
	float := reflect.TypeFor[float64]()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	if !w.CanConvert(float) || !g.CanConvert(float) {
		fail(t, msgAndArgs, "%T and %T are not both numbers", want, got)
	}
	if d := w.Convert(float).Float() - g.Convert(float).Float(); !(-delta <= d && d <= delta) {
		fail(t, msgAndArgs, "got %v, want %v, at most %v more or less", got, want, delta)
	}
}

// NoError asserts that err is nil.
func NoError(t TestingT, err error, msgAndArgs ...any) {
	if err != nil {
		t.Helper()
		fail(t, msgAndArgs, "got error %+v", err)
	}
}

// Error asserts that err is not nil.
func Error(t TestingT, err error, msgAndArgs ...any) {
	if err == nil {
		t.Helper()
		fail(t, msgAndArgs, "got no error")
	}
}

// EqualError asserts that err has the text want.
func EqualError(t TestingT, err error, want string, msgAndArgs ...any) {
	t.Helper()
	Error(t, err, msgAndArgs...)
	if got := err.Error(); got != want {
		fail(t, msgAndArgs, "errors differ:\n%s", diff(want, got))
	}
}

// ErrorContains asserts that the text of err contains part.
func ErrorContains(t TestingT, err error, part string, msgAndArgs ...any) {
	t.Helper()
	Error(t, err, msgAndArgs...)
	if got := err.Error(); !strings.Contains(got, part) {
		fail(t, msgAndArgs, "got error %q, want one with %q", got, part)
	}
}

// ErrorIs asserts that err or an error that it wraps is target, as in errors.Is.
func ErrorIs(t TestingT, err, target error, msgAndArgs ...any) {
	if !errors.Is(err, target) {
		t.Helper()
		fail(t, msgAndArgs, "got error %+v, want %+v", err, target)
	}
}

// NotErrorIs asserts the opposite of [ErrorIs].
func NotErrorIs(t TestingT, err, target error, msgAndArgs ...any) {
	if errors.Is(err, target) {
		t.Helper()
		fail(t, msgAndArgs, "got error %+v, want one that is not %+v", err, target)
	}
}

// ErrorAs asserts that err or an error that it wraps has the type to which target points, and sets *target to it, as in
// errors.As.
func ErrorAs(t TestingT, err error, target any, msgAndArgs ...any) {
	if !errors.As(err, target) {
		t.Helper()
		fail(t, msgAndArgs, "got %T %+v, want an error for %T", err, err, target)
	}
}

// Panics asserts that f panics.
func Panics(t TestingT, f func(), msgAndArgs ...any) {
	if !panics(f) {
		t.Helper()
		fail(t, msgAndArgs, "no panic")
	}
}

// panics reports whether f panics. A test that f ends with Fatal or Skip ends.
func panics(f func()) (panicked bool) {
	defer func() {
		if recover() != nil {
			panicked = true
		}
	}()
	f()
	return false
}

// diff returns the difference between want and got, which are not equal.
func diff(want, got any) (text string) {
	defer func() {
		if recover() != nil || text == "" { // an Equal method panics or ignores the difference
			text = fmt.Sprintf("got  %T %s\nwant %T %s", got, show(got), want, show(want))
		}
	}()
	return gocmp.Diff(want, got, gocmp.Exporter(func(reflect.Type) bool { return true }))
}

// show formats v for a failure.
func show(v any) string {
	if b, ok := v.([]byte); ok {
		return fmt.Sprintf("%q", b)
	}
	if err, ok := v.(error); ok && !isNil(err) {
		return fmt.Sprintf("%q", err.Error())
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		return fmt.Sprintf("&%#v", r.Elem().Interface())
	}
	return fmt.Sprintf("%#v", v)
}
