// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/sigpack"
	"github.com/weft-go/weft/protocols/replay"
)

// outForm is the form of an item.
type outForm uint8

const (
	formText outForm = iota
	formRefusal
	formSummary       // reasoning shown as summary
	formReasoningText // reasoning shown as content
	formSealed        // reasoning that is not shown
	formFunction
	formCustom
)

// idPrefixes are the prefixes of item IDs.
var idPrefixes = [...]string{
	formText: "msg_", formRefusal: "msg_", formSummary: "rs_", formReasoningText: "rs_", formSealed: "rs_", formFunction: "fc_", formCustom: "ctc_",
}

// partNames holds the event types and field names of each form. A form without added has no part.
var partNames = [...]struct {
	delta, done   string // of the text
	added, closed string // of the part
	index         string // the fields that specify the part in the item
	text          string // the field of the done event that repeats the text, up to its opening quote
}{
	formText: {
		"response.output_text.delta", "response.output_text.done",
		"response.content_part.added", "response.content_part.done", `,"content_index":0`, `,"text":"`,
	},
	formRefusal: {
		"response.refusal.delta", "response.refusal.done",
		"response.content_part.added", "response.content_part.done", `,"content_index":0`, `,"refusal":"`,
	},
	formSummary: {
		"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done", `,"summary_index":0`, `,"text":"`,
	},
	formReasoningText: {
		"response.reasoning_text.delta", "response.reasoning_text.done",
		"response.content_part.added", "response.content_part.done", `,"content_index":0`, `,"text":"`,
	},
	formSealed: {},
	formFunction: {
		delta: "response.function_call_arguments.delta", done: "response.function_call_arguments.done", text: `,"arguments":"`,
	},
	formCustom: {
		delta: "response.custom_tool_call_input.delta", done: "response.custom_tool_call_input.done", text: `,"input":"`,
	},
}

// runForm returns the form of a run of reasoning, text or refusal.
func runForm(k event.Kind, r Reasoning) outForm {
	switch k {
	case event.Text:
		return formText
	case event.Refusal:
		return formRefusal
	}
	switch r {
	case ReasoningRaw:
		return formReasoningText
	case ReasoningNone:
		return formSealed
	}
	return formSummary
}

// outItem is an output item under construction. Text is valid UTF-8.
type outItem struct {
	form  outForm
	index int // output_index
	id    []byte
	text  []byte // text, refusal, reasoning or arguments so far

	sig         []byte      // reasoning: its encrypted form, or the token that clients return instead
	flags       event.Flags // of sig
	annotations []byte      // text: JSON objects, separated by commas
	noted       int         // number of annotations
	logprobs    []byte      // text: JSON objects, separated by commas

	ordinal                 int32 // calls: in the order in which they opened
	callID, namespace, name string
}

// reset makes it an empty item that keeps its memory.
func (it *outItem) reset() {
	*it = outItem{
		id: it.id[:0], text: it.text[:0], sig: it.sig[:0], annotations: it.annotations[:0], logprobs: it.logprobs[:0],
	}
}

// seal adds a token to reasoning without a signature: a signed token if its text is shown, otherwise a sealed one
// unless the text is too long.
func (it *outItem) seal(c *replay.Signer, shown bool) {
	switch {
	case len(it.text) == 0 || len(it.sig) > 0:
		return
	case shown:
		it.sig = c.AppendSigned(it.sig, it.text)
	default:
		it.sig, _ = c.AppendSealed(it.sig, it.text)
	}
	it.flags = event.Encrypted
}

// seals reports whether reasoning that is not shown is sent to the client in a sealed token.
func (o *Options) seals() bool { return o.Seal && o.Signer != nil }

// withheld returns the encrypted content that represents data, a redacted_thinking block of the Messages API.
func withheld(kind, data []byte) (content []byte, ok bool) {
	if string(kind) != "redacted_thinking" {
		return nil, false
	}
	var b struct{ Data string }
	if json.Unmarshal(data, &b) != nil || b.Data == "" {
		return nil, false
	}
	return sigpack.Append(nil, sigpack.Withheld, b.Data, ""), true
}

func (it *outItem) annotate(data []byte) {
	if it.noted > 0 {
		it.annotations = append(it.annotations, ',')
	}
	it.annotations = jsonw.AppendRaw(it.annotations, data)
	it.noted++
}

func (it *outItem) addLogprobs(elements []byte) {
	if len(it.logprobs) > 0 {
		it.logprobs = append(it.logprobs, ',')
	}
	it.logprobs = append(it.logprobs, elements...)
}

// idCounter numbers the items of a response.
type idCounter struct {
	messages, reasoning, others int32
}

// appendOpaque appends an item unmodified, except that it adds a missing ID, because the official JavaScript client
// throws on items without one.
func (c *idCounter) appendOpaque(dst, data []byte, suffix string) []byte {
	n := c.others
	c.others++
	var id []byte
	jsonw.Members(data, func(key, value []byte) bool {
		if string(key) == `"id"` {
			id = value
		}
		return id == nil
	})
	switch {
	case id == nil:
		dst = append(dst, `{"id":"`...)
		dst = callid.Append(dst, "item_", suffix, 0, n)
		dst = append(dst, `",`...)
		return jsonw.AppendRaw(dst, data[bytes.IndexByte(data, '{')+1:])
	case len(id) > 2 && id[0] == '"':
		return jsonw.AppendRaw(dst, data)
	}
	at := cap(data) - cap(id) // id is a part of data
	dst = append(jsonw.AppendRaw(dst, data[:at]), '"')
	dst = callid.Append(dst, "item_", suffix, 0, n)
	return jsonw.AppendRaw(append(dst, '"'), data[at+len(id):])
}

// appendID appends the ID of it. It contains the number of the item among messages or among reasoning items, or the
// ordinal of the call in the response. So IDs do not depend on whether an aborted call has an item.
func (c *idCounter) appendID(dst []byte, it *outItem, suffix string) []byte {
	n := it.ordinal
	switch it.form {
	case formText, formRefusal:
		n = c.messages
		c.messages++
	case formSummary, formReasoningText, formSealed:
		n = c.reasoning
		c.reasoning++
	}
	return callid.Append(dst, idPrefixes[it.form], suffix, 0, n)
}

// appendItemKey appends the fields that identify the item and part of a delta.
func appendItemKey(dst []byte, it *outItem) []byte {
	dst = append(dst, `,"item_id":"`...)
	dst = append(dst, it.id...)
	dst = append(dst, `","output_index":`...)
	return strconv.AppendInt(dst, int64(it.index), 10)
}

// appendPart appends the item's only part, with its text if full is set.
func (it *outItem) appendPart(dst []byte, full bool) []byte {
	text := it.text
	if !full {
		text = nil
	}
	switch it.form {
	case formRefusal:
		dst = append(dst, `{"type":"refusal","refusal":"`...)
	case formSummary:
		dst = append(dst, `{"type":"summary_text","text":"`...)
	case formReasoningText:
		dst = append(dst, `{"type":"reasoning_text","text":"`...)
	default:
		dst = append(dst, `{"type":"output_text","text":"`...)
	}
	dst = jsonw.AppendText(dst, text)
	dst = append(dst, '"')
	if it.form == formText {
		dst = append(dst, `,"annotations":[`...)
		if full {
			dst = append(dst, it.annotations...)
		}
		dst = append(dst, `],"logprobs":[`...)
		if full {
			dst = append(dst, it.logprobs...)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// append appends the item with the given status. An item in progress is empty.
func (it *outItem) append(dst []byte, status string) []byte {
	full := status != "in_progress"
	dst = append(dst, `{"id":"`...)
	dst = append(dst, it.id...)
	switch it.form {
	case formSummary, formReasoningText, formSealed:
		dst = append(dst, `","type":"reasoning","status":"`...)
		dst = append(dst, status...)
		dst = append(dst, `","summary":[`...)
		if full && it.form == formSummary && len(it.text) > 0 {
			dst = it.appendPart(dst, true)
		}
		dst = append(dst, ']')
		if it.form == formReasoningText {
			dst = append(dst, `,"content":[`...)
			if full {
				dst = it.appendPart(dst, true)
			}
			dst = append(dst, ']')
		}
		if full && len(it.sig) > 0 {
			dst = append(dst, `,"encrypted_content":`...)
			if it.flags.Has(event.Encrypted) {
				dst = jsonw.AppendString(dst, it.sig)
			} else { // a signature of another API
				dst = jsonw.AppendString(dst, sigpack.Append(nil, sigpack.Text, "", string(it.sig)))
			}
		}
		return append(dst, '}')
	case formFunction, formCustom:
		if it.form == formFunction {
			dst = append(dst, `","type":"function_call","status":"`...)
		} else {
			dst = append(dst, `","type":"custom_tool_call","status":"`...)
		}
		dst = append(dst, status...)
		dst = append(dst, `","call_id":`...)
		dst = jsonw.AppendString(dst, it.callID)
		if it.namespace != "" {
			dst = append(dst, `,"namespace":`...)
			dst = jsonw.AppendString(dst, it.namespace)
		}
		dst = append(dst, `,"name":`...)
		dst = jsonw.AppendString(dst, it.name)
		dst = append(dst, partNames[it.form].text...)
		if full {
			dst = jsonw.AppendText(dst, it.text)
		}
		return append(dst, `"}`...)
	}
	dst = append(dst, `","type":"message","status":"`...)
	dst = append(dst, status...)
	dst = append(dst, `","role":"assistant","content":[`...)
	if full {
		dst = it.appendPart(dst, true)
	}
	return append(dst, `]}`...)
}
