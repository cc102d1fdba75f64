// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/zmq"
)

const local = "127.0.0.1:0"

// A fixture is an index with one worker, and its subscription.
type fixture struct {
	t      *testing.T
	x      *index.Index
	id     index.WorkerID
	stream *index.Stream
	log    lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, x: index.New(4, nil)}
	f.id = f.x.AddWorker(index.Key{Instance: "e"})
	f.stream = f.x.NewStream(f.id, &index.StreamOptions{Copies: true})
	return f
}

func (f *fixture) subscribe(addr string, opts ...zmq.Option) *zmq.Subscription {
	f.t.Helper()
	s, err := zmq.Subscribe(addr, f.stream, append([]zmq.Option{zmq.Fast, zmq.Logger(slog.New(slog.NewTextHandler(&f.log, nil)))}, opts...)...)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, s.Close()) })
	return s
}

// wait waits until the worker has the given number of blocks and state.
func (f *fixture) wait(blocks int, state index.State, why string) {
	f.t.Helper()
	var w index.Worker
	require.Eventually(f.t, func() bool {
		w, _ = f.x.Worker(f.id)
		return w.Blocks == blocks && w.State == state && (w.Why == why || why != "" && strings.Contains(w.Why, why))
	}, 10*time.Second, time.Millisecond, "%s", f)
}

func (f *fixture) String() string { w, _ := f.x.Worker(f.id); return fmt.Sprintf("%+v\n%s", w, &f.log) }

func (f *fixture) depth(tokens []uint32) int {
	_, m := f.x.Best(kvhash.Scheme{}.AppendBlocks(nil, tokens, 4, nil))
	return int(m.Depth)
}

// A subscription begins with the batches that the engine published before.
func TestSubscribeJoins(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	prompt := e.store(10, 0)
	prompt = append(prompt, e.store(20, 10)...)
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	f.wait(2, index.Exact, "")
	e.subscribers(1)
	prompt = append(prompt, e.store(30, 20)...)
	f.wait(3, index.Exact, "")
	require.Equal(t, 3, f.depth(prompt))
}

// What is known of an engine can be dropped and read again, with a new stream and a new subscription.
func TestSubscribeAgain(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	first := f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	prompt := append(e.store(10, 0), e.store(20, 10)...)
	f.wait(2, index.Exact, "")
	require.NoError(t, first.Close())
	f.stream = f.x.NewStream(f.id, &index.StreamOptions{Copies: true})
	f.stream.Forget("it was wrong")
	f.wait(0, index.Unknown, "it was wrong")
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	f.wait(2, index.Exact, "")
	prompt = append(prompt, e.store(30, 20)...)
	f.wait(3, index.Exact, "")
	require.Equal(t, 3, f.depth(prompt))
}

// Without a replay socket, the batches before are lost, and the worker is Degraded.
func TestSubscribeWithoutReplay(t *testing.T) {
	e, f := newEngine(t, local, ""), newFixture(t)
	f.subscribe(e.addr())
	e.subscribers(1)
	f.wait(0, index.Unknown, "no events yet")
	e.store(10, 0)
	f.wait(1, index.Exact, "")
	e.lose(20, 10)
	e.store(30, 10)
	f.wait(2, index.Degraded, "batch 1 was lost")
}

// A batch that does not arrive is replayed before the one that shows it.
func TestGapIsReplayed(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	prompt := e.store(10, 0)
	f.wait(1, index.Exact, "")
	for n := uint32(20); n < 1020; n += 10 {
		prompt = append(prompt, e.lose(n, n-10)...)
	}
	prompt = append(prompt, e.store(1020, 1010)...)
	f.wait(102, index.Exact, "")
	require.Equal(t, 102, f.depth(prompt))
}

// A loss is noticed although no batch follows.
func TestTailIsReplayed(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	e.store(10, 0)
	f.wait(1, index.Exact, "")
	e.lose(20, 10)
	f.wait(2, index.Exact, "")
}

// Batches that are published while the connection is lost are replayed, and the worker is Degraded meanwhile.
func TestReconnect(t *testing.T) {
	for _, replay := range []bool{true, false} {
		t.Run(fmt.Sprintf("replay=%v", replay), func(t *testing.T) {
			e, f := newEngine(t, local, local), newFixture(t)
			var opts []zmq.Option
			if replay {
				opts = append(opts, zmq.Replay(e.replayAddr()))
			}
			f.subscribe(e.addr(), opts...)
			e.subscribers(1)
			e.store(10, 0)
			f.wait(1, index.Exact, "")

			e.disconnect()
			e.subscribers(1)
			if !replay {
				f.wait(1, index.Degraded, "connection")
			}
			e.store(20, 10) // shows that nothing was missed
			f.wait(2, index.Exact, "")

			e.disconnect()
			e.lose(30, 20)
			e.subscribers(1)
			if replay {
				f.wait(3, index.Exact, "")
				return
			}
			e.store(40, 30)
			f.wait(2, index.Degraded, "batch 2 was lost") // the parent of the last block is unknown
		})
	}
}

// The engine is gone: its blocks remain, and the worker is Degraded with the reason.
func TestEngineGone(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	e.store(10, 0)
	f.wait(1, index.Exact, "")
	e.kill()
	f.wait(1, index.Degraded, "refused")
}

// A restarted engine has an empty cache, even if it publishes nothing, fewer batches than before, or more.
func TestRestart(t *testing.T) {
	for after := range 5 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			e, f := newEngine(t, local, local), newFixture(t)
			f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
			e.subscribers(1)
			for n := uint32(10); n < 40; n += 10 {
				e.store(n, n-10)
			}
			f.wait(3, index.Exact, "")
			e.kill()
			f.wait(3, index.Degraded, "connect")
			e = e.restarted()
			for i := range uint32(after) {
				e.store(1000+10*i, 0)
			}
			if after == 0 {
				f.wait(0, index.Unknown, "restarted")
			} else {
				f.wait(after, index.Exact, "")
			}
			e.subscribers(1)
			e.store(2000, 0)
			f.wait(after+1, index.Exact, "")
		})
	}
}

// Without a replay socket, the first batch shows the restart.
func TestRestartWithoutReplay(t *testing.T) {
	e, f := newEngine(t, local, ""), newFixture(t)
	f.subscribe(e.addr())
	e.subscribers(1)
	e.store(10, 0)
	e.store(20, 10)
	f.wait(2, index.Exact, "")
	e = e.restarted()
	e.subscribers(1)
	f.wait(2, index.Degraded, "connection")
	e.store(30, 0)
	f.wait(1, index.Exact, "")
}

// A restarted engine whose replay socket is not ready at first is not mistaken for its predecessor, although its numbers
// continue the sequence.
func TestRestartWithoutAnswer(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			e, f := newEngine(t, local, local), newFixture(t)
			f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
			e.subscribers(1)
			prompt := e.store(10, 0)
			prompt = append(prompt, e.store(20, 10)...)
			f.wait(2, index.Exact, "")
			e.kill()
			next := newEngine(t, e.events.Addr().String(), "")
			next.clock = e.clock + 60
			next.lose(1000, 0)
			next.lose(1010, 0)
			next.subscribers(1)
			next.store(1020, 0)
			f.wait(2, index.Degraded, "replay from "+e.replayAddr())
			if late {
				time.Sleep(300 * time.Millisecond) // longer than the patience
				next.store(1030, 0)
				f.wait(3, index.Degraded, "replay from "+e.replayAddr())
			}

			var err error
			next.mu.Lock()
			next.replay, err = net.Listen("tcp", e.replay.Addr().String())
			next.mu.Unlock()
			require.NoError(t, err)
			go next.accept(next.replay, next.router)
			if !late {
				f.wait(3, index.Exact, "")
			}
			require.Eventually(t, func() bool { return f.depth(prompt) == 0 }, 10*time.Second, time.Millisecond)
		})
	}
}

// An engine that no longer has the last batch that was received, but all after it, has lost nothing.
func TestReplayBeginsAfterLast(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	e.store(10, 0)
	f.wait(1, index.Exact, "")
	e.mu.Lock()
	e.hangUp()
	e.mu.Unlock()
	e.lose(20, 10)
	e.mu.Lock()
	e.first = 1
	e.mu.Unlock()
	f.wait(2, index.Exact, "")
	require.NotContains(t, f.log.String(), "are lost")
}

// The engine has only the last batches: the others are lost, and the rest of the replay is not.
func TestReplayIsTooShort(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	for n := uint32(10); n < 30_000; n += 10 {
		e.lose(n, 0)
	}
	e.first = 500
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	f.wait(2499, index.Degraded, "batches 0 to 499 were lost")
	e.subscribers(1)
	e.store(1_000_000, 0)
	f.wait(2500, index.Degraded, "batches 0 to 499 were lost")
}

// An engine that keeps no batches for replays is not treated as restarted on a connection that was not lost.
func TestReplayIsEmpty(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	e.first = 1 << 30
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	e.store(10, 0)
	f.wait(1, index.Exact, "")
	for range 50 { // several checks after silence
		time.Sleep(5 * time.Millisecond)
		w, _ := f.x.Worker(f.id)
		require.Equal(t, 1, w.Blocks)
	}
	e.disconnect()
	f.wait(0, index.Unknown, "restarted") // it may have been
}

// A replay socket that does not respond delays the events for a limited time.
func TestReplayFails(t *testing.T) {
	l, err := net.Listen("tcp", local)
	require.NoError(t, err)
	dead := "tcp://" + l.Addr().String()
	l.Close()
	e, f := newEngine(t, local, ""), newFixture(t)
	f.subscribe(e.addr(), zmq.Replay(dead))
	e.subscribers(1)
	f.wait(0, index.Unknown, "replay from "+dead)
	e.store(10, 0) // the first batch: nothing is missing
	f.wait(1, index.Exact, "")
	e.lose(20, 10)
	e.store(30, 10)
	f.wait(1, index.Degraded, "batch 1 is missing")
	f.wait(2, index.Degraded, "batch 1 was lost")
	e.store(40, 30)
	f.wait(3, index.Degraded, "batch 1 was lost")
	require.Contains(t, f.log.String(), "replay failed")
}

// Some publishers connect, so that the subscription has to listen.
func TestListen(t *testing.T) {
	e, f := newEngine(t, "", local), newFixture(t)
	s := f.subscribe("@tcp://"+local, zmq.Replay(e.replayAddr()))
	f.wait(0, index.Unknown, "no engine has connected")
	e.store(10, 0)
	e.connect(s.Addr().String())
	f.wait(1, index.Exact, "")
	e.subscribers(1)
	e.store(20, 10)
	f.wait(2, index.Exact, "")
	e.disconnect()
	f.wait(2, index.Degraded, "is lost")
	e.connect(s.Addr().String())
	f.wait(2, index.Exact, "")
}

// Several engines connect to one address; their topics distinguish them.
func TestSubscribeFunc(t *testing.T) {
	x := index.New(4, nil)
	streams := map[string]*index.Stream{}
	route := func(topic string, b *kvevent.Batch) *index.Stream {
		if topic == "other" {
			return nil
		}
		if streams[topic] == nil {
			streams[topic] = x.NewStream(x.AddWorker(index.Key{Instance: topic, DPRank: b.DPRank}), nil)
		}
		return streams[topic]
	}
	s, err := zmq.SubscribeFunc("@tcp://"+local, route, zmq.Fast)
	require.NoError(t, err)
	defer s.Close()
	var engines []*engine
	for _, topic := range []string{"kv@a@m", "kv@b@m", "other"} {
		e := newEngine(t, "", "")
		e.topic = topic
		e.connect(s.Addr().String())
		e.subscribers(1)
		engines = append(engines, e)
		e.store(10, 0)
	}
	engines[1].store(20, 10)
	wait := func(i int, blocks int, state index.State) {
		t.Helper()
		require.Eventually(t, func() bool {
			id, ok := x.Lookup(index.Key{Instance: engines[i].topic})
			w, _ := x.Worker(id)
			return ok && w.Blocks == blocks && w.State == state
		}, 5*time.Second, time.Millisecond)
	}
	wait(0, 1, index.Exact)
	wait(1, 2, index.Exact)
	engines[0].kill()
	wait(0, 1, index.Degraded)
	wait(1, 2, index.Exact)
	require.Len(t, x.AppendWorkers(nil), 2)
}

// A message that is not one of the engine's does not end the subscription.
func TestInvalidMessages(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	f.subscribe(e.addr(), zmq.Replay(e.replayAddr()))
	e.subscribers(1)
	for _, frames := range [][][]byte{{nil}, {[]byte("a"), []byte("b")}, make([][]byte, 20)} {
		e.mu.Lock()
		e.subs[0].Write(message(frames...))
		e.mu.Unlock()
	}
	e.store(10, 0)
	f.wait(1, index.Exact, "")
	e.publish([]byte{0xc1}, true) // with a valid number
	f.wait(1, index.Degraded, "batch 1 was lost or unreadable")
	e.store(20, 10)
	f.wait(2, index.Degraded, "batch 1 was lost or unreadable")
	require.Contains(t, f.log.String(), "invalid message")
}

// ipc:// is a Unix socket. The file of a process that has ended is replaced.
func TestIPC(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets in temporary directories")
	}
	path := filepath.Join(t.TempDir(), "kv.ipc")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	stale.Close()
	f := newFixture(t)
	f.subscribe("@ipc://" + path)
	again, err := zmq.Subscribe("@ipc://"+path, f.stream)
	require.ErrorContains(t, err, "in use")
	require.Nil(t, again)
	e := newEngine(t, "", "")
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	go e.serve(c, e.subscriber)
	e.subscribers(1)
	e.store(10, 0)
	f.wait(1, index.Exact, "")
}

// A rank has the ports of rank 0 plus its number.
func TestRank(t *testing.T) {
	e, f := newEngine(t, local, local), newFixture(t)
	minus3 := func(l net.Listener) string {
		a := l.Addr().(*net.TCPAddr)
		return fmt.Sprintf("tcp://%s:%d", a.IP, a.Port-3)
	}
	f.subscribe(minus3(e.events), zmq.Replay(minus3(e.replay)), zmq.Rank(3))
	e.store(10, 0)
	f.wait(1, index.Exact, "")
}

func TestInvalidOptions(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		addr string
		opts []zmq.Option
		want string
	}{
		{"gpu1:5557", nil, `zmq: subscribe: invalid address "gpu1:5557": want tcp://HOST:PORT or ipc://PATH`},
		{"tcp://*:5557", nil, "want the host of the engine, or @tcp://*:5557 to listen"},
		{"tcp://gpu1", nil, "want tcp://HOST:PORT"},
		{"tcp://gpu1:0", nil, "want tcp://HOST:PORT"},
		{"udp://gpu1:1", nil, `the transport is "udp"; want tcp or ipc`},
		{"ipc://", nil, `want tcp or ipc`},
		{"ipc:///a", []zmq.Option{zmq.Rank(1)}, "address ipc:///a has no port for rank 1"},
		{"tcp://gpu1:65535", []zmq.Option{zmq.Rank(1)}, "has no port for rank 1"},
		{"tcp://gpu1:1", []zmq.Option{zmq.Replay("x")}, `invalid address "x"`},
		{"tcp://gpu1:1", []zmq.Option{zmq.Replay("@tcp://*:1")}, "the engine listens there"},
	} {
		_, err := zmq.Subscribe(c.addr, f.stream, c.opts...)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), "zmq: subscribe: "), err)
	}
}

// Close returns although a peer does not respond, and leaves no goroutine.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	l, err := net.Listen("tcp", local) // accepts, but does not respond
	require.NoError(t, err)
	defer l.Close()
	for range 10 {
		f := newFixture(t)
		s, err := zmq.Subscribe("tcp://"+l.Addr().String(), f.stream)
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		began := time.Now()
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.Less(t, time.Since(began), time.Second)
		f.wait(0, index.Unknown, "is closed")
	}
	for until := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestFormatOption(t *testing.T) {
	f := newFixture(t)
	require.Panics(t, func() { zmq.Subscribe("tcp://127.0.0.1:1", f.stream, zmq.Format(200)) })
	s, err := zmq.Subscribe("tcp://127.0.0.1:1", f.stream, zmq.Format(kvevent.SGLang), zmq.Topic("kv-events"))
	require.NoError(t, err)
	require.Nil(t, s.Addr())
	require.NoError(t, s.Close())
}
