// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// An API is the wire format of requests, responses and errors. It is safe for concurrent use by multiple goroutines.
type API struct {
	api      block.API
	path     string
	idPrefix string
	style    apierr.Style
	decode   func(body []byte, l *block.Limits) (*block.Request, error)
	encode   func(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error)
}

// The supported APIs.
var (
	// Chat is OpenAI's Chat Completions API.
	Chat = &API{
		api: block.Chat, path: "/v1/chat/completions", idPrefix: "chatcmpl-", style: apierr.OpenAI,
		decode: chat.Decode, encode: chat.AppendRequest,
	}
	// Responses is OpenAI's Responses API.
	Responses = &API{
		api: block.Responses, path: "/v1/responses", idPrefix: "resp_", style: apierr.OpenAI,
		decode: responses.Decode, encode: responses.AppendRequest,
	}
	// Messages is Anthropic's Messages API.
	Messages = &API{
		api: block.Messages, path: "/v1/messages", idPrefix: "msg_", style: apierr.Anthropic,
		decode: messages.Decode, encode: messages.AppendRequest,
	}
	// Completions is OpenAI's legacy API for plain text, which engines still serve.
	Completions = &API{
		api: block.Completions, path: "/v1/completions", idPrefix: "cmpl-", style: apierr.OpenAI,
		decode: completions.Decode, encode: completions.AppendRequest,
	}
)

// Lookup returns the API with the given name, as returned by [API.String], or path. Paths are those of [API.Path] and of the
// endpoints that count the tokens of a request: /v1/messages/count_tokens and /v1/responses/input_tokens. The error lists the
// names.
func Lookup(name string) (*API, error) {
	for _, a := range [...]*API{Chat, Responses, Messages, Completions} {
		if name == a.String() || name == a.path {
			return a, nil
		}
	}
	switch name {
	case "/v1/messages/count_tokens":
		return Messages, nil
	case "/v1/responses/input_tokens":
		return Responses, nil
	}
	return nil, fmt.Errorf("wire: unknown API %q: want chat, responses, messages or completions", name)
}

// String returns the name of the API: chat, responses, messages or completions.
func (a *API) String() string { return a.api.String() }

// Path returns the path of the API's endpoint, for example /v1/messages. Its method is POST.
func (a *API) Path() string { return a.path }

// IDPrefix returns the prefix of response IDs, for example "chatcmpl-".
func (a *API) IDPrefix() string { return a.idPrefix }

// ErrorStyle returns the style of the API's error bodies.
func (a *API) ErrorStyle() apierr.Style { return a.style }

// Decode decodes the body of a request. The request retains body; the caller must not modify it. Errors are of type
// *[block.Error].
func (a *API) Decode(body []byte, l *block.Limits) (*block.Request, error) { return a.decode(body, l) }

// DecodeNext decodes the body of a request that has much in common with an earlier one, such as the next turn of the
// same conversation. Results and errors are the same as from Decode. What is the same in both bodies is taken over from prev:
// it is compared instead of scanned, and turns and tools are copied. Anything may differ, at any position.
//
// prev may be nil, or a request of another API; then nothing is taken over. What counts is the body from which prev was
// decoded; later edits do not matter, and other goroutines may read or edit prev at the same time, but not call Detach.
// The result does not refer to body, which the caller may use again. Where prev has the same text, it refers to memory of
// prev and of the requests before: together at most 1.25 times the size of its own body and 64 KiB, and for unescaped strings two
// times the size and 64 KiB; see [block.Request.Memory]. Raw JSON that is in part new is copied. Otherwise everything is copied.
//
// The cost is a comparison of the bodies, a scan and a copy of what differs, and a copy of the index, turns and tools.
func (a *API) DecodeNext(prev *block.Request, body []byte, l *block.Limits) (*block.Request, error) {
	if prev != nil && prev.API() == a.api {
		if r, ok, err := codec.DecodeNext(prev, body, l); ok {
			return r, err
		}
	}
	return a.decode(bytes.Clone(body), l)
}

// AppendRequest appends r as the body of a request of this API, and returns the blocks and fields that the API cannot carry. A
// request that was decoded by the same API keeps every byte that was not edited. Errors are of type *[block.Error], also those
// for losses, with [block.EncodeOptions.Strict].
func (a *API) AppendRequest(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	return a.encode(dst, r, opt)
}

// AppendConverted appends body, which is a request of the API from, as the body of a request of this API: see Decode and
// AppendRequest, which it combines. The caller may modify body afterwards.
func (a *API) AppendConverted(dst []byte, from *API, body []byte) ([]byte, []block.Loss, error) {
	r, err := from.Decode(bytes.Clone(body), nil) // losses may share memory with it
	if err != nil {
		return dst, nil, err
	}
	return a.AppendRequest(dst, r, nil)
}

// Status returns the HTTP status of a response that reports err, which may be any error: see [apierr.Wrap].
func (a *API) Status(err error) int { return apierr.Wrap(err).HTTPStatus(a.style) }

// AppendError appends the JSON body of a response that reports err, which may be any error: see [apierr.Wrap]. Internals of
// err are not disclosed.
func (a *API) AppendError(dst []byte, err error) []byte {
	return apierr.Wrap(err).AppendBody(dst, a.style, "")
}

// WriteError replies with err, which may be any error: see [apierr.Wrap]. It sets Content-Type and Retry-After and writes the
// status and the body of AppendError. Nothing of a response may have been written before.
func (a *API) WriteError(w http.ResponseWriter, err error) {
	e := apierr.Wrap(err)
	w.Header().Set("Content-Type", "application/json")
	if after := e.RetryAfterHeader(a.style); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(e.HTTPStatus(a.style))
	w.Write(e.AppendBody(nil, a.style, "")) // an error means that the client disconnected
}
