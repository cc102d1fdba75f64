// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/zmq/internal/zmtp"
)

// maxConns limits the connections of a subscription that listens.
const maxConns = 1024

// A Subscription applies the events of engines to streams, in goroutines of its own, until it is closed.
type Subscription struct {
	cfg    config
	route  func(topic string, b *kvevent.Batch) *index.Stream
	addr   zmtp.Address
	replay *zmtp.Address // or nil
	socket zmtp.Options
	log    *slog.Logger

	listener net.Listener // nil if the subscription connects
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex // protects the rest, and the streams
	single  *rank      // of Subscribe; nil for SubscribeFunc
	ranks   map[*index.Stream]*rank
	live    decoder
	again   decoder // of replays
	invalid time.Time
}

// A decoder holds the memory of decoded messages.
type decoder struct {
	*kvevent.Decoder
	batches []kvevent.Batch
}

func (d *decoder) decode(frames [][]byte) (err error) {
	d.batches, err = d.AppendFrames(d.batches[:0], frames)
	return err
}

// Subscribe applies the events of one rank of an engine to s. The address is tcp://HOST:PORT or ipc://PATH, after "@" for
// one to listen on; the package comment has the choice. The stream must not be used otherwise until Close. For vLLM,
// its [index.StreamOptions] should set Copies.
//
// Subscribe returns before the connection is established: until then the worker is Unknown, and [index.Index.Worker]
// returns the reason. An error is an invalid option or address, or an address that cannot be listened on.
func Subscribe(address string, s *index.Stream, opts ...Option) (*Subscription, error) {
	sub, err := newSubscription(address, opts)
	if err != nil {
		return nil, err
	}
	sub.single = sub.rankOf(s)
	sub.route = func(string, *kvevent.Batch) *index.Stream { return s }
	return sub.start()
}

// SubscribeFunc applies each batch to the stream that route returns for it, which is nil to ignore the batch. It is for
// addresses with several publishers: engines that connect to one address, which differ in the topic, and Dynamo's event
// plane, whose batches have a [kvevent.Batch.Worker]. A publisher's batches must always get the same stream.
//
// Calls of route are sequential, and must not call Close. The batch is valid until route returns. Lost batches are not replayed. Otherwise
// SubscribeFunc is like [Subscribe].
func SubscribeFunc(address string, route func(topic string, b *kvevent.Batch) *index.Stream, opts ...Option) (*Subscription, error) {
	sub, err := newSubscription(address, opts)
	if err != nil {
		return nil, err
	}
	sub.route, sub.replay = route, nil
	return sub.start()
}

func newSubscription(address string, opts []Option) (*Subscription, error) {
	s := &Subscription{ranks: map[*index.Stream]*rank{}}
	s.cfg = config{format: kvevent.VLLM, times: defaultTimes}
	for _, o := range opts {
		o(&s.cfg)
	}
	s.log = s.cfg.log
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if len(s.cfg.topics) == 0 {
		s.cfg.topics = []string{""}
	}
	resolve := func(address string) (a zmtp.Address, err error) {
		if a, err = zmtp.ParseAddress(address); err == nil {
			a, err = a.Offset(s.cfg.rank)
		}
		if err != nil {
			err = fmt.Errorf("zmq: subscribe: %w", err)
		}
		return a, err
	}
	var err error
	if s.addr, err = resolve(address); err != nil {
		return nil, err
	}
	if s.cfg.replay != "" {
		replay, err := resolve(s.cfg.replay)
		if err != nil {
			return nil, err
		}
		if replay.Listen {
			return nil, fmt.Errorf("zmq: subscribe: invalid replay address %q: the engine listens there", s.cfg.replay)
		}
		s.replay = &replay
	}
	s.log = s.log.With("events", s.addr.String())
	s.socket = zmtp.Options{Topics: s.cfg.topics, Heartbeat: s.cfg.times.heartbeat, Timeout: s.cfg.times.timeout}
	s.live.Decoder, s.again.Decoder = kvevent.NewDecoder(s.cfg.format, nil), kvevent.NewDecoder(s.cfg.format, nil)
	return s, nil
}

// start returns s, or nil and an error if its address cannot be listened on.
func (s *Subscription) start() (*Subscription, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.addr.Listen {
		l, err := zmtp.Listen(ctx, s.addr)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("zmq: subscribe: %w", err)
		}
		s.listener = l
		s.log.Info("listening for engines", "address", l.Addr().String())
		if s.single != nil {
			s.single.suspect(fmt.Sprintf("no engine has connected to %s yet", s.addr))
		}
		s.running.Go(func() { s.accept(ctx, l) })
		return s, nil
	}
	if s.single != nil {
		s.single.suspect(fmt.Sprintf("not connected to %s yet", s.addr))
	}
	s.running.Go(func() { s.connect(ctx) })
	return s, nil
}

// Addr returns the address on which the subscription listens, or nil if it connects.
func (s *Subscription) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Close ends the subscription and waits for its goroutines. The blocks of the workers remain; their state is Degraded
// until another subscription or other events arrive. The error is nil.
func (s *Subscription) Close() error {
	s.cancel()
	if s.listener != nil {
		s.listener.Close()
	}
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ranks {
		r.suspect(fmt.Sprintf("the subscription to %s is closed", s.addr))
	}
	return nil
}

// connect keeps a connection until ctx ends.
func (s *Subscription) connect(ctx context.Context) {
	pause := s.cfg.times.minPause
	for {
		conn, err := zmtp.Dial(ctx, s.addr, &s.socket)
		if err == nil {
			var received bool
			if received, err = s.serve(ctx, conn); received {
				pause = s.cfg.times.minPause
			}
		} else if ctx.Err() == nil {
			s.unreachable(err)
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("not connected to the engine's events", "err", err, "again_in", pause)
		select {
		case <-time.After(pause + rand.N(pause/4+1)):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, s.cfg.times.maxPause)
	}
}

// unreachable notes why the engine cannot be reached.
func (s *Subscription) unreachable(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ranks {
		r.suspect(fmt.Sprintf("not connected to %s: %v", s.addr, err))
	}
}

// accept serves the engines that connect, until ctx ends.
func (s *Subscription) accept(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	slots := make(chan struct{}, maxConns)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := l.Accept()
		if err != nil {
			<-slots
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Warn("accept failed", "err", err)
			select {
			case <-time.After(s.cfg.times.minPause):
			case <-ctx.Done():
			}
			continue
		}
		s.running.Go(func() {
			defer func() { <-slots }()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			c, err := zmtp.Handshake(conn, &s.socket)
			if err == nil {
				_, err = s.serve(ctx, c)
			}
			if ctx.Err() == nil {
				s.log.Warn("engine disconnected", "peer", conn.RemoteAddr().String(), "err", err)
			}
		})
	}
}

// serve applies the messages of a connection to its end, and reports whether there were any.
func (s *Subscription) serve(ctx context.Context, conn *zmtp.Conn) (received bool, err error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s.log.Info("connected to the engine's events", "peer", conn.RemoteAddr().String())
	wait := s.connected(ctx, conn)
	for {
		frames, err := conn.Receive(wait)
		switch {
		case errors.Is(err, zmtp.ErrIdle):
			wait = s.idle(ctx)
		case err != nil:
			s.disconnected(conn, err)
			return received, err
		default:
			received = true
			wait = s.add(ctx, conn, frames)
		}
	}
}

// connected notes a new connection and fetches what happened before. It returns the time to wait for a message.
func (s *Subscription) connected(ctx context.Context, conn *zmtp.Conn) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.single; r != nil {
		r.conn = conn
		switch {
		case s.replay != nil:
			if r.known && r.unsure.IsZero() {
				r.unsure, r.before = time.Now(), r.last
			}
			s.verify(ctx, r)
		case !r.known:
			r.suspect("") // the state is Unknown, because there are no events yet
		default:
			r.suspect(fmt.Sprintf("the connection to %s was lost, and no batch has shown since whether others are missing", s.addr))
		}
	}
	// The subscription takes effect some time after the connection: a batch before that is missed without a gap.
	return s.cfg.times.first
}

// disconnected notes the end of a connection.
func (s *Subscription) disconnected(conn *zmtp.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ranks {
		if r.conn == conn {
			r.conn = nil
			r.suspect(fmt.Sprintf("the connection to %s is lost: %v", s.addr, err))
		}
	}
}

// idle is called when nothing has arrived for a while.
func (s *Subscription) idle(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.single; r != nil && s.replay != nil {
		if r.missing.IsZero() {
			s.verify(ctx, r)
		} else {
			s.settle(ctx, r)
		}
		return s.wait(r)
	}
	return s.cfg.times.check
}

// add applies a message of the live stream.
func (s *Subscription) add(ctx context.Context, conn *zmtp.Conn, frames [][]byte) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.live.decode(frames); err != nil && time.Since(s.invalid) > time.Minute {
		s.invalid = time.Now()
		s.log.Warn("invalid message from the engine; further ones are not logged for a minute", "err", err)
	}
	wait := s.cfg.times.check
	for i := range s.live.batches {
		b := &s.live.batches[i]
		stream := s.route(s.live.Topic(), b)
		if stream == nil || b.Seq == kvevent.EndOfReplay {
			continue
		}
		r := s.rankOf(stream)
		r.conn = conn
		s.addBatch(ctx, r, b)
		wait = min(wait, s.wait(r))
	}
	return wait
}
