// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime is Python's datetime.strftime of a local time without a zone, in the C locale.
func (rt *render) strftime(f string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		pad := true
		c := f[i]
		if c == '-' && i+1 < len(f) { // an extension of glibc
			pad = false
			i++
			c = f[i]
		}
		two := func(n int) {
			if pad {
				fmt.Fprintf(&b, "%02d", n)
			} else {
				fmt.Fprintf(&b, "%d", n)
			}
		}
		switch c {
		case 'Y':
			fmt.Fprintf(&b, "%d", t.Year())
		case 'y':
			two(t.Year() % 100)
		case 'm':
			two(int(t.Month()))
		case 'd':
			two(t.Day())
		case 'e':
			fmt.Fprintf(&b, "%2d", t.Day())
		case 'H':
			two(t.Hour())
		case 'I':
			two((t.Hour()+11)%12 + 1)
		case 'M':
			two(t.Minute())
		case 'S':
			two(t.Second())
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'p':
			b.WriteString(t.Format("PM"))
		case 'A':
			b.WriteString(t.Weekday().String())
		case 'a':
			b.WriteString(t.Weekday().String()[:3])
		case 'B':
			b.WriteString(t.Month().String())
		case 'b', 'h':
			b.WriteString(t.Month().String()[:3])
		case 'j':
			if pad {
				fmt.Fprintf(&b, "%03d", t.YearDay())
			} else {
				fmt.Fprintf(&b, "%d", t.YearDay())
			}
		case 'u':
			fmt.Fprintf(&b, "%d", (int(t.Weekday())+6)%7+1)
		case 'w':
			fmt.Fprintf(&b, "%d", t.Weekday())
		case 'F':
			b.WriteString(t.Format("2006-01-02"))
		case 'T', 'X':
			b.WriteString(t.Format("15:04:05"))
		case 'R':
			b.WriteString(t.Format("15:04"))
		case 'D', 'x':
			b.WriteString(t.Format("01/02/06"))
		case 'c':
			b.WriteString(t.Format("Mon Jan _2 15:04:05 2006"))
		case 'Z', 'z': // a time without a zone prints none
		case 'V':
			_, w := t.ISOWeek()
			two(w)
		case 'G':
			y, _ := t.ISOWeek()
			fmt.Fprintf(&b, "%d", y)
		case 'U':
			two((t.YearDay() + 6 - int(t.Weekday())) / 7)
		case 'W':
			two((t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '%':
			b.WriteByte('%')
		default:
			rt.fail("strftime_now: %%%c is not supported", c)
		}
	}
	return b.String()
}
