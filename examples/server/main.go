// SPDX-License-Identifier: Apache-2.0

// Command server serves the Chat Completions, Responses and Messages APIs in front of an engine that generates from
// token ids.
//
//	go run ./examples/server -h
//
// It is a complete server: the model's own template and tokenizer, responses streamed or whole, tools and reasoning in
// the form of each API. Package examples/gateway/serve adds routing, retries, tenants and limits.
package main

import (
	"bytes"
	"cmp"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

const usage = `
usage: server [-listen ADDRESS] [-model-dir DIR] [-engine URL] [-model NAME]

Server answers requests of the Chat Completions, Responses and Messages APIs, streamed or whole, until it is killed. It does
not read stdin; it logs to stderr. -engine is a server with vLLM's /v1/completions that runs the model in -model-dir; without
one, an embedded engine repeats what the user wrote.

Example:
  server &
  curl 127.0.0.1:8080/v1/messages -d '{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello there"}]}'
`

func main() { cli.Exit("server", run(os.Args[1:], os.Stdout)) }

func run(args []string, stdout io.Writer) error {
	flags := cli.NewFlags("server", usage, stdout)
	listen := flags.String("listen", "127.0.0.1:8080", "`address` to listen on")
	dir := flags.String("model-dir", "mini", "`directory` of the model, or mini for the small tokenizer of this repository")
	engine := flags.String("engine", "", "`URL` of the engine, without /v1; by default an embedded one")
	name := flags.String("model", "m", "`name` of the model at the engine")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := cli.Model("model-dir", *dir)
	if err != nil {
		return err
	}
	m, err := prompt.Load(files, &prompt.Options{Name: *name})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	log.Printf("serving %s, template: %s, family: %s, window: %d", l.Addr(), m.Source(), m.Family(), m.Window())
	return http.Serve(l, newServer(m, *name, *engine, l.Addr()))
}

type server struct {
	model        *prompt.Model
	name, engine string
}

// newServer returns the handler. If engine is empty, the handler also serves an embedded engine at /v1/completions of
// its address.
func newServer(m *prompt.Model, name, engine string, own net.Addr) http.Handler {
	s, mux := &server{m, name, engine}, http.NewServeMux()
	if engine == "" {
		s.engine = "http://" + own.String()
		mux.Handle("POST /v1/completions", vllm.New(m.Tokenizer(), &vllm.Options{Model: name, MaxModelLen: m.Window()}))
	}
	for _, api := range []*wire.API{wire.Chat, wire.Responses, wire.Messages} {
		mux.HandleFunc("POST "+api.Path(), func(w http.ResponseWriter, r *http.Request) {
			if err := s.serve(w, r, api); err != nil { // the response has not started
				log.Printf("%s: %v", api, err)
				api.WriteError(w, err)
			}
		})
	}
	return mux
}

func (s *server) serve(w http.ResponseWriter, r *http.Request, api *wire.API) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		return err // too large: status 413
	}
	req, err := api.Decode(body, nil)
	if err != nil {
		return err
	}
	p, err := s.model.Render(req, time.Now())
	if err != nil {
		return err
	}
	if len(p.Losses) > 0 { // such as a message of an unknown role
		log.Printf("%s: not in the prompt as sent: %q", api, p.Losses)
	}
	dec, err := s.model.NewDecoder(req, p, nil)
	if err != nil {
		return err
	}
	log.Printf("%s: %d tokens, blocks %x", api, len(p.IDs()), kvhash.Scheme{}.AppendBlocks(nil, p.IDs(), 16, nil))
	er, err := http.NewRequestWithContext(r.Context(), http.MethodPost, s.engine+"/v1/completions", bytes.NewReader(dec.AppendRequest(nil, s.name)))
	if err != nil {
		return err
	}
	er.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(er) // ends if the client disconnects
	if err != nil {
		return apierr.EngineFailed(err)
	}
	defer resp.Body.Close()
	enc := api.NewEncoder(req, nil)
	w.Header().Set("Content-Type", enc.ContentType())
	var out []byte
	for events := range dec.Events(resp.StatusCode, resp.Body) {
		if out = enc.Append(out[:0], events...); len(out) > 0 {
			w.Write(out)
			http.NewResponseController(w).Flush()
		}
	}
	out = enc.Finish(out[:0], dec.Finish(nil)...)
	if err := cmp.Or(dec.Err(), enc.Err()); err != nil && !enc.Started() {
		return err
	}
	w.Write(out)
	return nil
}
