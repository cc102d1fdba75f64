// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// An apiError is an error response in vLLM's envelope.
type apiError struct {
	status int
	kind   string // BadRequestError, NotFoundError, ...
	param  string
	msg    string
}

// Error returns the message.
func (e *apiError) Error() string { return e.msg }

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequestError", param, fmt.Sprintf(format, args...)}
}

// body returns the envelope as vLLM writes it: {"error":{"message","type","param","code"}}, code being the HTTP status.
func (e *apiError) body() []byte {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	in := inner{Message: e.msg, Type: e.kind, Code: e.status}
	if e.param != "" {
		in.Param = &e.param
	}
	b, _ := json.Marshal(struct {
		Error inner `json:"error"`
	}{in}) // strings and integers always encode
	return b
}

func (e *apiError) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	w.Write(e.body())
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // these values always encode; a write error means that the client disconnected
}
