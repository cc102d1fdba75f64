// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/zmq"
)

// parseEngine parses URL or KIND=URL, followed by settings of the engine.
func parseEngine(s string) (engineConfig, error) {
	parts := strings.Split(s, ",")
	kind, url, ok := strings.Cut(parts[0], "=")
	if strings.HasPrefix(parts[0], "http://") || strings.HasPrefix(parts[0], "https://") {
		kind, url, ok = "", parts[0], true // the engine tells its kind
	}
	e := engineConfig{Kind: kind, URL: url}
	if !ok || url == "" {
		return e, fmt.Errorf("want URL or KIND=URL")
	}
	for _, p := range parts[1:] {
		switch name, value, _ := strings.Cut(p, "="); {
		case name == "events" && value != "":
			e.Events = value
		case name == "replay" && value != "":
			e.Replay = value
		case name == "key_env" && value != "":
			e.KeyEnv = value
		case name == "model" && value != "":
			e.Model = value
		default:
			return e, fmt.Errorf("unknown setting %q: want events=ADDRESS, replay=ADDRESS, key_env=VARIABLE or model=NAME", p)
		}
	}
	return e, nil
}

// follow makes the gateway follow the cache events of an engine, if their address is configured.
func (e *engineConfig) follow(to *serve.Engine, log *slog.Logger) error {
	if e.Events == "" {
		if e.Replay != "" {
			return fmt.Errorf("replay %s without events: set the address of the events too", e.Replay)
		}
		return nil
	}
	format := kvevent.VLLM
	switch {
	case e.Kind == "llamacpp" || e.Kind == "ollama" || e.Kind == "tensorrt-llm" || e.managed():
		return fmt.Errorf("events %s of an engine of the kind %s, which publishes none", e.Events, e.Kind)
	case e.Kind == "sglang" || e.Dialect == "sglang":
		format = kvevent.SGLang
	}
	options := []zmq.Option{zmq.Format(format), zmq.Logger(log.With("engine", to.Name))}
	if e.Replay != "" {
		options = append(options, zmq.Replay(e.Replay))
	}
	to.Copies = format == kvevent.VLLM
	to.Events = func(s *index.Stream) (cancel func(), err error) {
		sub, err := zmq.Subscribe(e.Events, s, options...)
		switch {
		case errors.Is(err, syscall.EADDRINUSE): // for example by the gateway that this one replaces, until its requests end
			log.Warn("no events yet from the engine", "engine", to.Name, "err", err)
			return subscribeLater(e.Events, s, options), nil
		case err != nil:
			return nil, err
		}
		return func() { sub.Close() }, nil
	}
	return nil
}

// subscribeLater subscribes to an address to listen on as soon as it is no longer in use.
func subscribeLater(addr string, s *index.Stream, options []zmq.Option) (cancel func()) {
	s.Suspect(addr + " is in use")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-stop:
				return
			}
			if sub, err := zmq.Subscribe(addr, s, options...); err == nil {
				<-stop
				sub.Close()
				return
			}
		}
	}()
	return func() { close(stop); <-done }
}
