// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// echoFields are the fields of a response object that repeat the request, with their defaults, in the order of the
// output.
var echoFields = [...]struct{ name, value string }{
	{"background", "false"},
	{"billing", "null"},
	{"conversation", "null"},
	{"frequency_penalty", "0"},
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"presence_penalty", "0"},
	{"previous_response_id", "null"},
	{"prompt", "null"},
	{"prompt_cache_key", "null"},
	{"prompt_cache_retention", "null"},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", "null"},
	{"service_tier", `"default"`},
	{"store", "false"},
	{"temperature", "1"},
	{"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", "0"},
	{"top_p", "1"},
	{"truncation", `"disabled"`},
	{"user", "null"},
}

// maxEcho is the maximum length in bytes of a field of the request that the response repeats. A longer one is replaced by
// its default: a stream repeats the fields three times, and clients know what they sent.
const maxEcho = 64 << 10

// outEcho holds the encoded fields of echoFields, each preceded by a comma.
type outEcho struct{ members []byte }

func (o *outEcho) read(field func(name string) []byte) {
	for i := range echoFields {
		o.members = append(o.members, `,"`...)
		o.members = append(o.members, echoFields[i].name...)
		o.members = append(o.members, `":`...)
		var given []byte
		if field != nil {
			given = field(echoFields[i].name)
		}
		switch {
		case len(given) == 0 || len(given) > maxEcho || string(given) == "null" || !json.Valid(given):
			o.members = append(o.members, echoFields[i].value...)
		case echoFields[i].name == "text":
			o.members = appendText(o.members, given)
		default:
			o.members = jsonw.AppendRaw(o.members, given)
		}
	}
}

// appendText appends the field text of a request. Clients require its format, which has a default.
func appendText(dst, given []byte) []byte {
	var t struct {
		Format    struct{ Type string }
		Verbosity json.RawMessage
	}
	if json.Unmarshal(given, &t) != nil || t.Format.Type != "" {
		return jsonw.AppendRaw(dst, given)
	}
	dst = append(dst, `{"format":{"type":"text"}`...)
	if len(t.Verbosity) > 0 && string(t.Verbosity) != "null" {
		dst = jsonw.AppendRaw(append(dst, `,"verbosity":`...), t.Verbosity)
	}
	return append(dst, '}')
}

// outObject holds the fields of a response object other than its output items.
type outObject struct {
	opt    *Options
	echo   *outEcho
	status string
	why    event.Why     // of an incomplete response
	err    *apierr.Error // of a failed one
	usage  *event.Tokens // nil while it is in progress
}

// appendHead appends the object up to the opening bracket of its output.
func (o *outObject) appendHead(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = jsonw.AppendString(dst, o.opt.ID)
	dst = append(dst, `,"object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, o.opt.Created, 10)
	dst = append(dst, `,"completed_at":`...)
	if o.status == "completed" && o.opt.CompletedAt != 0 {
		dst = strconv.AppendInt(dst, o.opt.CompletedAt, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"status":"`...)
	dst = append(dst, o.status...)
	dst = append(dst, `","error":`...)
	if o.err != nil {
		dst = o.err.AppendResponseError(dst)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"incomplete_details":`...)
	if o.status == "incomplete" {
		dst = append(dst, `{"reason":"`...)
		dst = append(dst, incompleteReason(o.why)...)
		dst = append(dst, `"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"model":`...)
	dst = jsonw.AppendString(dst, o.opt.Model)
	return append(dst, `,"output":[`...)
}

// appendTail appends the rest of the object.
func (o *outObject) appendTail(dst []byte) []byte {
	dst = append(dst, ']')
	dst = append(dst, o.echo.members...)
	dst = append(dst, `,"usage":`...)
	if o.usage == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendUsage(dst, o.usage)
	}
	return append(dst, '}')
}

func incompleteReason(why event.Why) string {
	switch why {
	case event.ContentFilter:
		return "content_filter"
	case event.Paused:
		return "max_tool_calls"
	}
	return "max_output_tokens"
}

// appendResponse appends the response object of a stream: without items while it is in progress, with the completed
// ones at its end.
func (s *Encoder) appendResponse(dst []byte, status string, e *apierr.Error) []byte {
	o := outObject{opt: &s.opt, echo: &s.echo, status: status, why: s.why, err: e}
	if status != "in_progress" {
		o.usage = &s.usage
	}
	dst = o.appendHead(dst)
	first := true
	if status != "in_progress" {
		for _, it := range s.output {
			if it == nil {
				continue // still open when the stream failed
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, it...)
		}
	}
	return o.appendTail(dst)
}

// AppendResponse appends the complete response object, for a request without a stream. It equals the response in the
// last event of an [Encoder] of the same events, including IDs, with one exception: if c.Err is set, the response has status
// failed and the items so far, without aborted calls. Log probabilities belong to the first text. Only the first choice is
// encoded.
func AppendResponse(dst []byte, c *event.Collector, opt Options) []byte {
	if c.Err != event.None {
		return AppendFailed(dst, c, opt, &apierr.Error{Why: c.Err, Message: c.Message, Code: c.Code})
	}
	return AppendFailed(dst, c, opt, nil)
}

// AppendFailed is like [AppendResponse] for a response that failed with e, which may be nil.
func AppendFailed(dst []byte, c *event.Collector, opt Options, e *apierr.Error) []byte {
	var none event.Answer
	a := &none
	if len(c.Answers) > 0 {
		a = &c.Answers[0]
	}
	var echo outEcho
	echo.read(opt.Echo)
	o := outObject{opt: &opt, echo: &echo, status: finishStatus(a.Finish), why: a.Finish, usage: &c.Usage}
	if e != nil {
		o.status, o.err = "failed", e
	}
	dst = o.appendHead(dst)
	w := outWhole{opt: &opt, suffix: callid.Suffix(opt.ID), cut: e == nil && !opt.WholeCalls}
	for i := range a.Blocks {
		status := "completed"
		if i == len(a.Blocks)-1 {
			status = finishStatus(a.Finish)
		}
		dst = w.appendBlock(dst, &a.Blocks[i], a, status)
	}
	return o.appendTail(dst)
}

// outWhole is the state of AppendResponse.
type outWhole struct {
	opt    *Options
	suffix string
	ids    callid.Set
	count  idCounter
	n      int  // items so far
	probed bool // the log probabilities were sent
	cut    bool // aborted calls are sent
}

// appendBlock appends b as an output item, or nothing if it is not sent. status is the status of a block that ended
// with the response.
func (w *outWhole) appendBlock(dst []byte, b *event.Block, a *event.Answer, status string) []byte {
	var it outItem
	opaque := false
	switch b.Kind {
	case event.Reasoning, event.Text, event.Refusal:
		it.form = runForm(b.Kind, w.opt.Reasoning)
		shown := it.form != formSealed
		if shown || w.opt.seals() {
			it.text = jsonw.AppendValid(nil, b.Data)
		}
		it.sig, it.flags = slices.Clip(b.Signature), b.Flags
		if b.Kind == event.Reasoning && w.opt.Seal {
			it.seal(w.opt.Signer, shown)
		}
		if !shown {
			it.text = nil
		}
		if len(it.text) == 0 && b.Kind == event.Reasoning {
			it.form = formSealed
		}
		for _, n := range b.Annotations {
			if jsonw.IsObject(n) {
				it.annotate(n)
			}
		}
		if len(it.text) == 0 && len(it.sig) == 0 && it.noted == 0 {
			return dst
		}
		if it.form == formText && !w.probed {
			w.probed = true
			for _, l := range a.Logprobs {
				if jsonw.IsArray(l) {
					it.logprobs = jsonw.AppendElements(it.logprobs, l)
				}
			}
		}
	case event.ToolStart, event.ToolAbort:
		id, n := w.ids.Assign("call_", w.suffix, 0, b.ID)
		cut := b.Cut()
		if cut && !w.cut || !cut && !b.Flags.Has(event.Complete) || w.opt.left(b.Flags) {
			return dst
		}
		it = w.opt.callItem(b.Flags, n, b.Name, id)
		it.text = jsonw.AppendValid(nil, b.Data)
		switch {
		case w.opt.wrapped(b.Flags, b.Name):
			var u jsonw.Unwrap
			if it.text = u.Next(nil, it.text); !cut {
				it.text = u.Close(it.text)
			}
		case cut && it.form == formFunction: // Codex executes the call regardless of its status
			it.text = jsonw.AppendSpoiled(nil, it.text)
		case cut:
		case it.form == formFunction && jsonw.IsBlank(it.text):
			it.text = append(it.text, "{}"...)
		}
		if status = "completed"; cut {
			status = "incomplete"
		}
	case event.ToolResult, event.Opaque:
		if data, ok := withheld([]byte(b.ID), b.Data); ok {
			it, status = outItem{form: formSealed, sig: data, flags: event.Encrypted}, "completed"
			break
		}
		if !jsonw.IsTyped(b.Data) {
			return dst
		}
		opaque = true
	default:
		return dst
	}
	if w.n > 0 {
		dst = append(dst, ',')
	}
	w.n++
	if opaque {
		return w.count.appendOpaque(dst, b.Data, w.suffix)
	}
	it.id = w.count.appendID(nil, &it, w.suffix)
	return it.append(dst, status)
}
