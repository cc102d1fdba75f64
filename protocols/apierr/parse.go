// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"strconv"

	"github.com/weft-go/weft/protocols/internal/errform"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// parseLimits bounds the error bodies that are parsed.
var parseLimits = jsonscan.Limits{Bytes: 1 << 20, Depth: 64, Values: 1 << 16}

// Parse parses the error in the body of another server's HTTP response: its class, message, code and parameter. status
// is the HTTP status, or 0 if unknown. These forms are known:
//
//	{"error":{"message":…,"type":…,"code":…}}             OpenAI, vLLM, SGLang
//	{"error":"…"}                                          Ollama, and proxies
//	{"type":"error","error":{"type":…,"message":…}}        Anthropic
//	{"type":"error","message":…,"code":…}                  events of the Responses API
//	{"object":"error","message":…,"type":…,"code":400}     old vLLM
//	{"message":…,"type":"Bad Request","code":400}          Dynamo
//	{"detail":"…"}                                         FastAPI
//
// The class is determined by the code, otherwise by the status, otherwise by the type. It is EngineFailed if none of
// them is known. If the body cannot be parsed or has another form, the class follows from the status. The text of such
// a body, which may be an HTML page of a proxy, appears in the Cause only.
//
// The server's status is not copied: [Error.HTTPStatus] is determined by class and code.
func Parse(status int, body []byte) *Error {
	doc, err := jsonscan.Scan(body, parseLimits)
	if err == nil {
		if v := errform.Find(doc.Root()); v.Exists() {
			f := errform.Read(v, status)
			return &Error{
				Why: f.Why, Message: f.Message, Code: f.Code, Param: f.Param, prompt: f.Prompt, output: f.Output, limit: f.Max,
			}
		}
	}
	return &Error{
		Why: errform.Class(status, "", ""), Message: "The engine answered with status " + strconv.Itoa(status) + ".",
		Cause: bodyError(body[:min(len(body), 512)]),
	}
}

// bodyError is the body of an HTTP response that has none of the known forms of errors.
type bodyError string

func (e bodyError) Error() string { return "body " + strconv.Quote(string(e)) }
