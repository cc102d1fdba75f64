// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"strings"

	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
)

// peekState records how far peekCall or listOfObjects has looked ahead, so that no byte is examined twice.
type peekState struct {
	off   int64 // stream offset at which it began
	calls bool  // it was peekCall
	done  bool  // the outcome is No
	list  bool  // a bracket came first
	at    int   // bytes examined
	key   int   // position of the current key
	step  uint8 // into callBegins
	lex   jsontext.Lexer
}

// callBegins is the beginning of a call object, without blanks: n and a are the keys of name and arguments, s is a
// string. It is followed by the parts that are skipped before the name: the value of a type, t, and a comma.
const (
	callBegins = `{n:s,a:{` + `:t,`
	callKnown  = uint8(len(callBegins) - 3)
)

// peek continues to look ahead from window position i; calls selects the caller. The result is at most MaxHold bytes.
func (p *tagged) peek(i int, calls bool) (k *peekState, w []byte) {
	k = &p.ahead
	if k.off != p.off(i) || k.calls != calls {
		*k = peekState{off: p.off(i), calls: calls}
	}
	return k, p.win[i:min(len(p.win), i+p.c.g.MaxHold)]
}

// peekCall reports whether a call object, perhaps the first of a list, begins at window position i: a name, then arguments
// that are an object, with nothing else before them. It looks at most MaxHold bytes ahead.
func (p *tagged) peekCall(i int) scan.Prefix {
	k, w := p.peek(i, true)
	for !k.done && k.at < len(w) {
		c := w[k.at]
		want := callBegins[k.step]
		if strings.IndexByte("nast", want) < 0 || !k.lex.Started() && c != '"' {
			work.Add(1)
			k.at++
			switch {
			case blank(c):
			case c == want:
				switch k.step++; k.step {
				case callKnown:
					k.step-- // the next call repeats this step
					k.at--
					return scan.Yes
				case uint8(len(callBegins)): // after the skipped parts, the name is expected again
					k.step = 1
				}
			case c == '[' && k.step == 0 && !k.list:
				k.list = true
			default:
				k.done = true
			}
			continue
		}
		if !k.lex.Started() {
			k.key = k.at
		}
		n, st := k.lex.Scan(w[k.at:])
		k.at += n
		switch st {
		case jsontext.Open:
			continue
		case jsontext.Done:
			key := w[k.key:k.at]
			k.lex.Reset()
			switch {
			case want == 's', want == 't':
				k.step++
			case want == 'n' && (string(key) == `"type"` || p.fieldOf(key) == idField): // Llama writes "type": "function" first
				k.step = callKnown
			case want == 'n' && p.fieldOf(key) == argsField && p.tag.Body.Call.Strict:
				return scan.Yes // after a tag, arguments are enough to tell a call
			default:
				f := p.fieldOf(key)
				k.done = want == 'n' && f != nameField || want == 'a' && f != argsField
				k.step++
			}
		default:
			k.done = true
		}
	}
	if k.done || len(w) == p.c.g.MaxHold {
		return scan.No
	}
	return scan.More
}

// listOfObjects reports whether a list of objects or dicts begins at window position i. It looks at most MaxHold bytes
// ahead.
func (p *tagged) listOfObjects(i int) scan.Prefix {
	k, w := p.peek(i, false)
	for ; !k.done && k.at < len(w); k.at++ {
		work.Add(1)
		switch c := w[k.at]; {
		case k.at == 0 && c == '[', k.at > 0 && blank(c):
		case k.at > 0 && c == '{':
			return scan.Yes
		default:
			k.done = true
		}
	}
	if k.done || len(w) == p.c.g.MaxHold {
		return scan.No
	}
	return scan.More
}
