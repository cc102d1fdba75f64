// SPDX-License-Identifier: Apache-2.0

package jsontext

// Elements calls f with each element of array, which must be valid JSON, until f returns false.
func Elements(array []byte, f func(value []byte) bool) {
	for i := next(array, 1); i < len(array) && array[i] != ']'; {
		n := valueLen(array[i:])
		if !f(array[i : i+n]) {
			return
		}
		if i = next(array, i+n); i < len(array) && array[i] == ',' {
			i = next(array, i+1)
		}
	}
}

// Members calls f with each quoted key and value of object, which must be valid JSON, until f returns false.
func Members(object []byte, f func(key, value []byte) bool) {
	for i := next(object, 1); i < len(object) && object[i] != '}'; {
		k := valueLen(object[i:])
		v := next(object, next(object, i+k)+1)
		n := valueLen(object[v:])
		if !f(object[i:i+k], object[v:v+n]) {
			return
		}
		if i = next(object, v+n); i < len(object) && object[i] == ',' {
			i = next(object, i+1)
		}
	}
}

func next(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func valueLen(b []byte) int {
	var l Lexer
	n, _ := l.Scan(b)
	return n
}
