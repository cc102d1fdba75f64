// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/zmq"
)

// A libzmq is an engine whose sockets are libzmq's, in a Python process. Its messages are made by an engine that has no
// sockets.
type libzmq struct {
	*engine
	events, replays string
	in              io.Writer
}

// newLibzmq starts an engine, or skips. WEFT_PYZMQ is a Python with pyzmq; see .ci/live.
func newLibzmq(t *testing.T, events, replay string, flags ...string) *libzmq {
	python := os.Getenv("WEFT_PYZMQ")
	if python == "" {
		t.Skip("needs a Python with pyzmq (set WEFT_PYZMQ)")
	}
	cmd := exec.Command(python, append([]string{filepath.Join("testdata", "peer.py"), events, replay}, flags...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	t.Log(line)
	return &libzmq{engine: newEngine(t, "", ""), events: fields[0], replays: fields[1], in: in}
}

func (l *libzmq) tell(command string) {
	frames := l.sent[len(l.sent)-1]
	_, err := fmt.Fprintln(l.in, command, hex.EncodeToString(frames[0]), hex.EncodeToString(frames[1]), hex.EncodeToString(frames[2]))
	require.NoError(l.t, err)
}

func (l *libzmq) store(n, parent uint32) []uint32 {
	tokens := l.lose(n, parent)
	l.tell("send")
	return tokens
}

func (l *libzmq) keep(n, parent uint32) []uint32 {
	tokens := l.lose(n, parent)
	l.tell("keep")
	return tokens
}

// The sockets of libzmq, over TCP and IPC, listening and connecting.
func TestLibzmq(t *testing.T) {
	ipc := func(name string) string { return "ipc://" + filepath.Join(t.TempDir(), name) }
	for _, c := range []struct{ name, events, replay string }{
		{"tcp", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"},
		{"ipc", ipc("events"), ipc("replay")},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, f := newLibzmq(t, c.events, c.replay, "ping"), newFixture(t)
			prompt := e.store(10, 0)
			f.subscribe(e.events, zmq.Replay(e.replays), zmq.Topic(""))
			f.wait(1, index.Exact, "")
			for n := uint32(20); n < 2020; n += 10 {
				prompt = append(prompt, e.keep(n, n-10)...)
			}
			f.wait(201, index.Exact, "") // after silence
			prompt = append(prompt, e.keep(2020, 2010)...)
			prompt = append(prompt, e.store(2030, 2020)...)
			f.wait(203, index.Exact, "")
			require.Equal(t, 203, f.depth(prompt))
			time.Sleep(time.Second) // heartbeats of both sides
			require.NotContains(t, f.log.String(), "not connected")
			e.store(2040, 2030)
			f.wait(204, index.Exact, "")
		})
	}
	t.Run("connect", func(t *testing.T) {
		f := newFixture(t)
		s := f.subscribe("@tcp://"+local, zmq.Topic("kv@"))
		e := newLibzmq(t, "tcp://"+s.Addr().String(), "tcp://127.0.0.1:*", "connect", "ping")
		require.Eventually(t, func() bool { return strings.Contains(f.log.String(), "connected to the engine's events") }, 10*time.Second, time.Millisecond)
		time.Sleep(100 * time.Millisecond) // until the subscription has taken effect
		e.topic = "kv@pod@m"
		e.store(10, 0)
		f.wait(1, index.Exact, "")
		e.topic = "other"
		e.store(20, 10)
		e.topic = "kv@pod@m"
		e.store(30, 10)
		f.wait(2, index.Degraded, "batch 1 was lost") // libzmq filters by topic
	})
	t.Run("wrong socket", func(t *testing.T) {
		e, f := newLibzmq(t, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"), newFixture(t)
		f.subscribe(e.replays)
		f.wait(0, index.Unknown, "the peer ended the handshake; it must be a socket of the kind PUB or XPUB")
	})
}
