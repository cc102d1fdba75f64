// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"

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
	mux.HandleFunc("POST /floor", func(w http.ResponseWriter, r *http.Request) { forward(w, r, engine+"/v1/completions") })
	s := &server{url: "http://" + l.Addr().String(), gateway: g, http: &http.Server{Handler: mux}}
	go s.http.Serve(l)
	return s, nil
}

func (s *server) close() {
	s.gateway.Close()
	s.http.Close()
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

// job returns the request of an API, or of the floor.
func (s *server) job(name string) (*job, error) {
	switch name {
	case "floor":
		return &job{URL: s.url + "/floor", Body: `{"return_token_ids":true}`}, nil
	case "chat":
		return &job{URL: s.url + "/v1/chat/completions", Body: `{"model":"m","stream":true,"messages":[{"role":"user","content":"Write."}]}`}, nil
	case "messages":
		return &job{URL: s.url + "/v1/messages", Body: `{"model":"m","stream":true,"max_tokens":100000,"messages":[{"role":"user","content":"Write."}]}`}, nil
	case "responses":
		return &job{URL: s.url + "/v1/responses", Body: `{"model":"m","stream":true,"input":"Write."}`}, nil
	}
	return nil, fmt.Errorf("unknown API %q: want chat, messages or responses", name)
}
