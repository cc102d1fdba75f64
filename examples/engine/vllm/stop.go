// SPDX-License-Identifier: Apache-2.0

package vllm

import "bytes"

// A stopper searches for stop strings in text that arrives in pieces. It holds back the longest tail that may start
// one.
type stopper struct {
	stops   []string
	include bool // the stop string itself is part of the output
	held    []byte
}

// feed appends the text that cannot be part of a stop string to dst. After a hit, that is the text up to the stop
// string.
func (s *stopper) feed(dst, text []byte) (out []byte, hit string) {
	if len(s.stops) == 0 {
		return append(dst, text...), ""
	}
	s.held = append(s.held, text...)
	at := -1
	for _, stop := range s.stops {
		if i := bytes.Index(s.held, []byte(stop)); i >= 0 && (at < 0 || i < at) {
			at, hit = i, stop
		}
	}
	if at >= 0 {
		if s.include {
			at += len(hit)
		}
		return append(dst, s.held[:at]...), hit
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > keep; n-- {
			if bytes.HasSuffix(s.held, []byte(stop)[:n]) {
				keep = n
			}
		}
	}
	n := len(s.held) - keep
	dst = append(dst, s.held[:n]...)
	s.held = append(s.held[:0], s.held[n:]...)
	return dst, ""
}

// finish appends the text held back, if the output ends without a hit.
func (s *stopper) finish(dst []byte) []byte {
	dst = append(dst, s.held...)
	s.held = nil
	return dst
}
