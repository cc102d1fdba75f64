// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	antopt "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	oaiopt "github.com/openai/openai-go/v3/option"
)

// A desk is a server that gives every request the same response and records the last request.
type desk struct {
	openai openai.Client
	claude anthropic.Client

	mu     sync.Mutex
	kind   string // Content-Type
	answer []byte
	asked  question
}

// A question is a request as an SDK sent it.
type question struct {
	path   string
	header http.Header
	body   []byte
}

func newDesk(t testing.TB) *desk {
	d := &desk{}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	d.openai, d.claude = clients(s)
	return d
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = question{path: r.URL.Path, header: r.Header.Clone(), body: body}
	w.Header().Set("Content-Type", d.kind)
	// In two pieces that end anywhere: the SDKs put events together themselves.
	n := len(d.answer) * 2 / 3
	w.Write(d.answer[:n])
	http.NewResponseController(w).Flush()
	w.Write(d.answer[n:])
}

// stream sets the response to server-sent events, whole to a JSON body.
func (d *desk) stream(answer []byte) { d.set("text/event-stream", answer) }
func (d *desk) whole(answer []byte)  { d.set("application/json", answer) }

func (d *desk) set(kind string, answer []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kind, d.answer = kind, bytes.Clone(answer)
}

// last returns the last question.
func (d *desk) last() question {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

// clients returns clients of a server that are set up as a reader of the SDKs' documentation would, except that they do not
// retry and share the server's connections.
func clients(s *httptest.Server) (openai.Client, anthropic.Client) {
	return openai.NewClient(oaiopt.WithBaseURL(s.URL+"/v1"), oaiopt.WithAPIKey("k"), oaiopt.WithMaxRetries(0), oaiopt.WithHTTPClient(s.Client())),
		anthropic.NewClient(antopt.WithBaseURL(s.URL), antopt.WithAPIKey("k"), antopt.WithMaxRetries(0), antopt.WithHTTPClient(s.Client()))
}
