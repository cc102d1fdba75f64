// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/router/zmq/internal/zmtp"
)

// greeting is the greeting of ZMTP 3 with the mechanism NULL, from 37/ZMTP.
func greeting(minor byte) string {
	return "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03" + string(minor) + "NULL" + strings.Repeat("\x00", 16) + "\x00" + strings.Repeat("\x00", 31)
}

// ready is the READY command of a kind of socket.
func ready(kind string) string {
	body := "\x05READY\x0bsocket-type\x00\x00\x00" + string(rune(len(kind))) + kind // names have no case
	return "\x04" + string(rune(len(body))) + body
}

// pipe returns a connection whose peer sends s, and then nothing, or hangs up. sent receives what is written.
func pipe(t *testing.T, s string, hangUp bool) (conn net.Conn, sent func() string) {
	ours, peer := net.Pipe()
	var out bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(&out, peer)
	}()
	go func() {
		io.WriteString(peer, s)
		if hangUp {
			time.Sleep(time.Millisecond)
			peer.Close()
		}
	}()
	t.Cleanup(func() { ours.Close(); peer.Close() })
	return ours, func() string { ours.Close(); <-done; return out.String() }
}

func fast() *zmtp.Options {
	return &zmtp.Options{Topics: []string{"kv", ""}, Timeout: 200 * time.Millisecond, Heartbeat: 20 * time.Millisecond, MaxMessage: 1 << 20}
}

// The output equals the bytes that 37/ZMTP specifies.
func TestHandshakeBytes(t *testing.T) {
	sub := "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
	for _, c := range []struct {
		name, peer string
		dealer     bool
		want       string
	}{
		{"SUB", greeting(1) + ready("PUB"), false, greeting(1) + sub + "\x04\x0c\x09SUBSCRIBEkv\x04\x0a\x09SUBSCRIBE"},
		{"SUB, ZMTP 3.0", greeting(0) + ready("XPUB"), false, greeting(1) + sub + "\x00\x03\x01kv\x00\x01\x01"},
		{"DEALER", greeting(1) + ready("ROUTER"), true, greeting(1) + "\x04\x29\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00" + "\x01\x00\x00\x02hi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, sent := pipe(t, c.peer, false)
			o := fast()
			o.Dealer = c.dealer
			z, err := zmtp.Handshake(conn, o)
			require.NoError(t, err)
			if c.dealer {
				require.NoError(t, z.Send(nil, []byte("hi")))
			}
			require.Equal(t, c.want, sent())
		})
	}
}

// A peer that breaks the rules, or needs what is not implemented, is refused with the reason.
func TestHostilePeers(t *testing.T) {
	ok := greeting(1) + ready("PUB")
	long := func(flags byte, n uint64) string {
		return string(binary.BigEndian.AppendUint64([]byte{flags}, n))
	}
	for name, c := range map[string]struct{ peer, want string }{
		"HTTP":                   {"HTTP/1.1 400 Bad Request\r\n", `the peer does not use ZMTP; it begins with "HTTP/1.1 400 Bad Request\r\n"`},
		"ZMTP 1":                 {"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x00", "ZMTP 1"},
		"ZMTP 2":                 {"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x01", "ZMTP 2"},
		"CURVE":                  {strings.Replace(greeting(1), "NULL\x00", "CURVE", 1) + ready("PUB"), `mechanism "CURVE"; want NULL`},
		"wrong socket":           {greeting(1) + ready("PULL"), `the peer is a "PULL" socket; want PUB or XPUB`},
		"no socket":              {greeting(1) + "\x04\x06\x05READY", `the peer is a "" socket`},
		"no READY":               {greeting(1) + "\x04\x05\x04PING", `command "PING" instead of READY`},
		"message for READY":      {greeting(1) + "\x00\x05\x04PING", "instead of READY"},
		"huge READY":             {greeting(1) + long(6, 1<<40), "instead of READY"},
		"ERROR":                  {greeting(1) + "\x04\x0a\x05ERROR\x03no!", `error from the peer: "no!"`},
		"property without value": {greeting(1) + "\x04\x0a\x05READY\x05abcd", "invalid property"},
		"property without name":  {greeting(1) + "\x04\x0b\x05READY\x00\x00\x00\x00\x00", "invalid property"},
		"property too long":      {greeting(1) + "\x04\x0c\x05READY\x01a\xff\xff\xff\xff", `invalid property "a"`},
		"cut greeting":           {greeting(1)[:20], "timeout"},
		"cut command":            {greeting(1) + "\x04\x20\x05READY", "timeout"},
		"silence":                {"", "timeout"},
		"reserved flags":         {ok + "\x08\x00", "invalid flags of a frame: 0x08"},
		"command with more":      {ok + "\x05\x00", "invalid flags"},
		"negative length":        {ok + long(2, 1<<63), "invalid length"},
		"huge frame":             {ok + long(2, 1<<40), "message exceeds 1048576 bytes"},
		"huge message":           {ok + strings.Repeat(long(3, 600<<10)+strings.Repeat("x", 600<<10), 2), "message exceeds"},
		"many frames":            {ok + strings.Repeat("\x01\x00", 65), "more than 64 frames"},
		"huge command":           {ok + long(6, 1<<20), "command of 1048576 bytes"},
		"empty command":          {ok + "\x04\x00", "invalid command"},
		"command without name":   {ok + "\x04\x01\x00", "invalid command"},
		"command cut":            {ok + "\x04\x02\x05R", "invalid command"},
		"short PING":             {ok + "\x04\x06\x04PING\x00", "invalid PING"},
		"long PING":              {ok + "\x04\x18\x04PING" + strings.Repeat("\x00", 19), "invalid PING"},
		"late ERROR":             {ok + "\x04\x06\x05ERROR", "error from the peer: no reason"},
		"cut frame":              {ok + "\x00\x05ab", "timeout within a message"},
		"cut message":            {ok + "\x01\x01a", "timeout within a message"},
		"no heartbeat":           {ok, "no heartbeat in 80ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, _ := pipe(t, c.peer, false)
			z, err := zmtp.Handshake(conn, fast())
			if err == nil {
				_, err = z.Receive(time.Minute)
			}
			require.ErrorContains(t, err, c.want)
			_, ok := errors.AsType[*zmtp.PeerError](err)
			require.True(t, ok)
		})
	}
}

// Only the bytes that arrive take memory, not the declared length.
func TestMemoryOfDeclaredLength(t *testing.T) {
	o := fast()
	o.MaxMessage = 1 << 30
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	conn, _ := pipe(t, greeting(1)+ready("PUB")+string(binary.BigEndian.AppendUint64([]byte{2}, 1<<30))+"abc", true)
	z, err := zmtp.Handshake(conn, o)
	require.NoError(t, err)
	_, err = z.Receive(time.Minute)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// Frames of all lengths, split at each position, with commands between messages and frames.
func TestReceive(t *testing.T) {
	frame := func(flags byte, body string) string {
		if len(body) < 256 {
			return string([]byte{flags, byte(len(body))}) + body
		}
		return string(binary.BigEndian.AppendUint64([]byte{flags | 2}, uint64(len(body)))) + body
	}
	big := strings.Repeat("0123456789", 30_000)
	input := greeting(1) + ready("PUB") +
		frame(1, "") + frame(4, "\x04PING\x00\x05ctx") + frame(1, "seq") + frame(0, big) +
		frame(4, "\x04PONG") + frame(4, "\x07UNKNOWNx") + frame(0, "one") + frame(0, "") + frame(0, strings.Repeat("y", 255)) + frame(0, strings.Repeat("z", 256))
	want := [][]string{{"", "seq", big}, {"one"}, {""}, {strings.Repeat("y", 255)}, {strings.Repeat("z", 256)}}
	steps := []int{1, 7, 1000, len(input)}
	if testing.Short() {
		steps = steps[1:]
	}
	for _, step := range steps {
		ours, peer := net.Pipe()
		out := make(chan string)
		go func() {
			b, _ := io.ReadAll(peer)
			out <- string(b)
		}()
		go func() {
			for s := input; s != ""; s = s[min(step, len(s)):] {
				io.WriteString(peer, s[:min(step, len(s))])
			}
		}()
		z, err := zmtp.Handshake(ours, &zmtp.Options{Topics: []string{""}})
		require.NoError(t, err)
		for i, w := range want {
			frames, err := z.Receive(time.Minute)
			require.NoError(t, err, i)
			var got []string
			for _, f := range frames {
				got = append(got, string(f))
			}
			require.Equal(t, w, got)
		}
		_, err = z.Receive(time.Millisecond)
		require.ErrorIs(t, err, zmtp.ErrIdle)
		z.Close()
		require.True(t, strings.HasSuffix(<-out, frame(4, "\x04PONGctx")), "the context of a PING is returned")
	}
}

// PINGs keep a silent connection, and only peers of ZMTP 3.1 get them.
func TestHeartbeats(t *testing.T) {
	for minor, pings := range map[byte]bool{0: false, 1: true} {
		ours, peer := net.Pipe()
		defer peer.Close()
		got := make(chan bool, 100)
		go io.WriteString(peer, greeting(minor)+ready("PUB"))
		go func() {
			b := make([]byte, 1<<10)
			for {
				n, err := peer.Read(b)
				if err != nil {
					return
				}
				if bytes.Contains(b[:n], []byte("\x04\x07\x04PING\x00\x00")) { // 60 ms, in tenths of a second
					got <- true
					go io.WriteString(peer, "\x04\x05\x04PONG")
				}
			}
		}()
		z, err := zmtp.Handshake(ours, fast())
		require.NoError(t, err)
		_, err = z.Receive(300 * time.Millisecond)
		require.ErrorIs(t, err, zmtp.ErrIdle)
		require.Equal(t, pings, len(got) > 3)
		z.Close()
	}
}

// Short waits send no more PINGs than long ones.
func TestIdleWithoutPings(t *testing.T) {
	conn, sent := pipe(t, greeting(1)+ready("PUB"), false)
	o := fast()
	o.Heartbeat = time.Minute
	z, err := zmtp.Handshake(conn, o)
	require.NoError(t, err)
	for range 20 {
		_, err = z.Receive(time.Millisecond)
		require.ErrorIs(t, err, zmtp.ErrIdle)
	}
	require.NotContains(t, sent(), "PING")
}

// A warm connection receives without allocating.
func TestReceiveAllocations(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // deadlines of net.Pipe allocate
	require.NoError(t, err)
	defer l.Close()
	go func() {
		peer, err := l.Accept()
		if err != nil {
			return
		}
		defer peer.Close()
		go io.Copy(io.Discard, peer)
		for out := greeting(1) + ready("PUB"); err == nil; out = strings.Repeat("\x01\x02kv\x01\x0812345678\x02\x00\x00\x00\x00\x00\x00\x00\x05hello", 1000) {
			_, err = io.WriteString(peer, out)
		}
	}()
	ours, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	z, err := zmtp.Handshake(ours, &zmtp.Options{Topics: []string{""}})
	require.NoError(t, err)
	defer z.Close()
	failed := error(nil)
	n := testing.AllocsPerRun(2000, func() {
		if _, err := z.Receive(time.Minute); err != nil {
			failed = err
		}
	})
	require.NoError(t, failed)
	if !raceEnabled {
		require.Zero(t, n)
	}
}

// Canceling the context ends a handshake with a peer that sends nothing.
func TestDialIsCanceled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err := zmtp.ParseAddress("tcp://" + l.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	began := time.Now()
	_, err = zmtp.Dial(ctx, a, &zmtp.Options{Timeout: time.Minute})
	require.Error(t, err)
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestAddresses(t *testing.T) {
	for _, s := range []string{"tcp://gpu1:5557", "@tcp://*:5557", "@tcp://127.0.0.1:0", "tcp://[::1]:5557", "ipc:///run/kv.ipc", "@ipc://@abstract"} {
		a, err := zmtp.ParseAddress(s)
		require.NoError(t, err)
		require.Equal(t, s, a.String())
		require.Equal(t, s[0] == '@', a.Listen)
	}
}

// A stream is a connection that delivers the bytes of a fuzzer.
type stream struct {
	net.Conn // nil
	r        *bytes.Reader
}

func (s *stream) Read(p []byte) (int, error)         { return s.r.Read(p) }
func (s *stream) Write(p []byte) (int, error)        { return len(p), nil }
func (s *stream) Close() error                       { return nil }
func (s *stream) SetReadDeadline(t time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(t time.Time) error { return nil }

// FuzzReceive: no input causes a panic, an endless loop, or a message beyond the limits.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(greeting(1)+ready("PUB")+"\x01\x02kv\x04\x08\x04PING\x00\x00x\x00\x01x"), false)
	f.Add([]byte(greeting(0)+ready("ROUTER")+"\x02\x00\x00\x00\x00\x00\x00\x00\x01x"), true)
	f.Add([]byte(greeting(1)+"\x04\x08\x05ERROR\x01x"), true)
	f.Fuzz(func(t *testing.T, data []byte, dealer bool) {
		o := &zmtp.Options{Dealer: dealer, Topics: []string{""}, MaxMessage: 1 << 10}
		z, err := zmtp.Handshake(&stream{r: bytes.NewReader(data)}, o)
		for n := 0; err == nil; n++ {
			var frames [][]byte
			frames, err = z.Receive(time.Minute)
			size := 0
			for _, f := range frames {
				size += len(f)
			}
			if size > 1<<10 || len(frames) > 64 || n > len(data) || err == nil && len(frames) == 0 {
				t.Fatalf("message %d: %d frames, %d bytes", n, len(frames), size)
			}
		}
		if _, ok := errors.AsType[*zmtp.PeerError](err); !ok && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	})
}

// An endless is a connection that repeats a message forever, after the handshake.
type endless struct {
	stream
	message []byte
	pos     int
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.r.Len() > 0 {
		return e.r.Read(p)
	}
	for n < len(p) {
		c := copy(p[n:], e.message[e.pos:])
		n, e.pos = n+c, (e.pos+c)%len(e.message)
	}
	return n, nil
}

// BenchmarkReceive reads messages with a payload of 100 bytes, and of 10 KB as for 2,000 tokens, without the cost of the
// network.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			message := append([]byte("\x01\x02kv\x01\x0812345678\x02"), binary.BigEndian.AppendUint64(nil, uint64(size))...)
			conn := &endless{stream{r: bytes.NewReader([]byte(greeting(1) + ready("PUB")))}, append(message, make([]byte, size)...), 0}
			z, err := zmtp.Handshake(conn, &zmtp.Options{Topics: []string{""}})
			require.NoError(b, err)
			b.SetBytes(int64(len(conn.message)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := z.Receive(time.Minute); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
