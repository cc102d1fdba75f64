// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
)

func TestParseEngine(t *testing.T) {
	for s, want := range map[string]engineConfig{
		"vllm=http://gpu1:8000":                                           {Kind: "vllm", URL: "http://gpu1:8000"},
		"vllm=http://gpu1:8000,events=@tcp://*:5557":                      {Kind: "vllm", URL: "http://gpu1:8000", Events: "@tcp://*:5557"},
		"vllm=http://g,events=tcp://g:5557,replay=ipc:///run/replay=.ipc": {Kind: "vllm", URL: "http://g", Events: "tcp://g:5557", Replay: "ipc:///run/replay=.ipc"},
	} {
		got, err := parseEngine(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, s := range []string{"vllm", "vllm=", "vllm=http://g,tcp://g:1", "vllm=http://g,events=", "vllm=http://g,topic=kv"} {
		_, err := parseEngine(s)
		require.Error(t, err, s)
	}
}

func TestFollowErrors(t *testing.T) {
	e := engineConfig{Kind: "vllm", Replay: "tcp://gpu1:5657"}
	require.ErrorContains(t, e.follow(&serve.Engine{}, slog.New(slog.DiscardHandler)), "without events")
	err := run(t.Context(), []string{"-model", "m", "-tool-call-parser", "hermes", "-engine", "vllm=http://127.0.0.1:1,events=tcp://*:5557"}, io.Discard, io.Discard, nil)
	require.ErrorContains(t, err, `engine "vllm-0": events: zmq: subscribe: invalid address "tcp://*:5557"`)
}

// The blocks of an engine's events are found by the hashes of a prompt.
func TestFollow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go publish(l)
	e := engineConfig{Kind: "vllm", Events: "tcp://" + l.Addr().String()}
	var to serve.Engine
	require.NoError(t, e.follow(&to, slog.New(slog.DiscardHandler)))
	require.True(t, to.Copies)
	x := index.New(4, nil)
	cancel, err := to.Events(x.NewStream(x.AddWorker(index.Key{Instance: "e"}), &index.StreamOptions{Copies: to.Copies}))
	require.NoError(t, err)
	defer cancel()
	hashes := kvhash.Scheme{}.AppendBlocks(nil, []uint32{1, 2, 3, 4, 5}, 4, nil)
	require.Eventually(t, func() bool { _, m := x.Best(hashes); return m.Depth == 1 && m.State == index.Exact }, 5*time.Second, time.Millisecond)
}

// An address that is in use, as by a gateway that is being replaced, is taken over when it is free.
func TestFollowTakesOver(t *testing.T) {
	before, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := engineConfig{Kind: "vllm", Events: "@tcp://" + before.Addr().String()}
	var to serve.Engine
	require.NoError(t, e.follow(&to, slog.New(slog.DiscardHandler)))
	x := index.New(4, nil)
	id := x.AddWorker(index.Key{Instance: "e"})
	cancel, err := to.Events(x.NewStream(id, nil))
	require.NoError(t, err)
	w, _ := x.Worker(id)
	require.Contains(t, w.Why, "is in use")
	before.Close()
	require.Eventually(t, func() bool { w, _ = x.Worker(id); return strings.Contains(w.Why, "no engine has connected") }, 10*time.Second, 10*time.Millisecond)
	cancel()

	again, err := net.Listen("tcp", before.Addr().String())
	require.NoError(t, err)
	defer again.Close()
	cancel, err = to.Events(x.NewStream(id, nil))
	require.NoError(t, err)
	cancel() // while it waits
}

// publish is the PUB socket of an engine: it sends one batch that stores the block of the tokens 1 to 4.
func publish(l net.Listener) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, 1
	copy(greeting[12:], "NULL")
	ready := "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
	io.WriteString(c, string(greeting)+ready)
	r := bufio.NewReader(c)
	if _, err := r.Discard(64 + len(ready) + len("\x04\x0a\x09SUBSCRIBE")); err != nil {
		return
	}
	payload := binary.BigEndian.AppendUint64([]byte{0x93, 0xcb}, math.Float64bits(1))
	payload = append(payload, "\x91\x95\xabBlockStored\x91\x07\xc0\x94\x01\x02\x03\x04\x04\x00"...)
	c.Write(append([]byte("\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00"), append([]byte{byte(len(payload))}, payload...)...))
	io.Copy(io.Discard, r)
}
