// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// kimiK3 returns the grammar of Kimi K3 (XTML), which frames visible text too:
//
//	<|open|>think<|sep|>reasoning<|close|>think<|sep|>
//	<|open|>response<|sep|>text<|close|>response<|sep|>
//	<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>
//	<|open|>argument key="x" type="number"<|sep|>1<|close|>argument<|sep|>
//	<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>
//
// (one line in reality). Instead of arguments a call may hold one JSON object, in a json element. Values are not
// escaped; in attributes &quot; and &amp; are. Blanks may surround an element's name, and the <|sep|> after the close
// of think is sometimes missing. The wire has no call ids.
//
// Sources: the XTML description in moonshotai/Kimi-K3; the kimi_k3 parsers of vLLM and SGLang.
//
// Replay: all of it in thinking mode; encoding_k3.py of moonshotai/Kimi-K3.
func kimiK3() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "kimi_k3",
		Aliases: []string{"kimik3"},
		Elements: &grammar.Elements{
			Open: grammar.Tok("<|open|>"), Sep: grammar.Tok("<|sep|>"), Close: grammar.Tok("<|close|>"),
			EndOfTurn: []grammar.Marker{grammar.Tok("<|end_of_msg|>")},
		},
		Replay:  replay.MustRule("all; off: none"),
		MaxHold: maxHold,
	}
}
