// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// server serves the gateway and the floor.
type server struct {
	url     string
	gateway *serve.Gateway
	http    *http.Server
}

// serveAll serves the gateway and the floor in front of an engine.
func serveAll(engine string) (*server, error) {
	to, err := url.Parse(engine)
	if err != nil {
		return nil, err
	}
	model, err := prompt.New(nil, &prompt.Options{Tokenizer: mini.Load(), Family: "hermes"})
	if err != nil {
		return nil, err
	}
	g, err := serve.New(&serve.Options{Model: "m", Prompts: model, Engines: []serve.Engine{{Name: "e", URL: engine}}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.Close()
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", g)
	mux.Handle("POST /floor", buffered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { forward(w, r, engine+"/v1/completions") })))
	mux.Handle("POST /proxy/", http.StripPrefix("/proxy", buffered(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})))
	s := &server{url: "http://" + l.Addr().String(), gateway: g, http: &http.Server{Handler: mux}}
	go s.http.Serve(l)
	return s, nil
}

func (s *server) close() {
	s.gateway.Close()
	s.http.Close()
}

// buffered reads the body before h does. A transport may still look for its end when the engine responds, and closes the
// connection if the server has closed the body by then.
func buffered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// forward copies the engine's stream, as little as a program in front of an engine can do.
func forward(w http.ResponseWriter, r *http.Request, url string) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	rc := http.NewResponseController(w)
	buf := make([]byte, 16<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			if err := rc.Flush(); err != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// The rows of this process that are not the gateway's.
const (
	floorName = "floor"
	proxyName = "proxy"
)

// bodies contains the requests of the APIs, for a model named m.
var bodies = map[string]struct{ path, body string }{
	"chat":      {"/v1/chat/completions", `{"model":"m","stream":true,"max_tokens":100000,"messages":[{"role":"user","content":"Write."}]}`},
	"messages":  {"/v1/messages", `{"model":"m","stream":true,"max_tokens":100000,"messages":[{"role":"user","content":"Write."}]}`},
	"responses": {"/v1/responses", `{"model":"m","stream":true,"input":"Write."}`},
}

// jobs returns what to measure, the floor first: the handlers of this process, then the rivals in the given APIs.
func (s *server) jobs(apis []string, rivals []*rival) ([]job, error) {
	const completion = `{"stream":true,"return_token_ids":true}`
	list := []job{
		{name: floorName, pid: os.Getpid(), URL: s.url + "/floor", Body: completion},
		{name: proxyName, pid: os.Getpid(), URL: s.url + "/proxy/v1/completions", Body: completion},
	}
	add := func(prefix, base string, pid int) error {
		for _, api := range apis {
			b, ok := bodies[api]
			if !ok {
				return fmt.Errorf("unknown API %q: want chat, messages or responses", api)
			}
			list = append(list, job{name: prefix + api, pid: pid, URL: base + b.path, Body: b.body})
		}
		return nil
	}
	if err := add("", s.url, os.Getpid()); err != nil {
		return nil, err
	}
	for _, r := range rivals {
		if err := add(r.name+"/", r.url, r.pid); err != nil {
			return nil, err
		}
	}
	return list, nil
}
