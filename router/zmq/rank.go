// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/zmq/internal/zmtp"
)

// A rank is a stream and its position.
type rank struct {
	stream *index.Stream
	conn   *zmtp.Conn // the connection on which its batches arrive, or nil
	why    string     // the reason that the stream was last given by Suspect

	replayed bool // a replay contained a batch: the engine keeps some

	known bool     // a batch was received
	last  position // of the last one

	unsure time.Time // when the connection was established again; zero if the engine is known to be the same as before
	before position  // of the last batch before that

	missing time.Time     // when the first of the missing batches was missed; zero if none is missing
	retry   time.Time     // when a replay may be requested again, after one that failed
	pause   time.Duration // between these attempts
}

// A position identifies a batch of an engine.
type position struct {
	seq uint64
	at  time.Time // zero if unknown
}

func (s *Subscription) rankOf(stream *index.Stream) *rank {
	r := s.ranks[stream]
	if r == nil {
		r = &rank{stream: stream}
		s.ranks[stream] = r
	}
	return r
}

func (r *rank) suspect(why string) {
	if r.why != why {
		r.why = why
		r.stream.Suspect(why)
	}
}

func (r *rank) note(b *kvevent.Batch) { r.known, r.last = true, position{b.Seq, b.Time} }

// next returns the number of the batch that should come next.
func (r *rank) next() uint64 {
	if !r.known {
		return 0
	}
	return r.last.seq + 1
}

// wait returns how long a connection may be silent until idle is called.
func (s *Subscription) wait(r *rank) time.Duration {
	if s.replay == nil || r.missing.IsZero() && r.why == "" {
		return s.cfg.times.check
	}
	return min(s.cfg.times.check, max(time.Until(r.retry), time.Millisecond))
}

// addBatch applies a batch of the live stream.
func (s *Subscription) addBatch(ctx context.Context, r *rank, b *kvevent.Batch) {
	now := time.Now()
	switch {
	case r.unsure.IsZero():
	case b.Seq <= r.before.seq:
		r.unsure = time.Time{} // a publisher repeats nothing, so this is another engine, which the stream notices
	case now.Sub(r.unsure) < s.cfg.times.patience:
		if s.verify(ctx, r); !r.unsure.IsZero() {
			return // b will be in the replay
		}
	}
	if s.replay != nil && b.Seq > r.next() && now.After(r.retry) {
		s.fetch(ctx, r, r.next(), nil) // before b, so that b need not be held; settle looks at the result
	}
	r.stream.Add(*b)
	r.note(b)
	s.settle(ctx, r)
	if r.missing.IsZero() && r.unsure.IsZero() {
		r.suspect("")
	}
}

// settle requests missing batches until none is missing, or continues without them.
func (s *Subscription) settle(ctx context.Context, r *rank) {
	for range 3 { // another time if a replay shows that the engine was restarted
		need, from := r.stream.Need()
		if need == index.None {
			r.missing = time.Time{}
			return
		}
		if need == index.Replay && s.replay != nil {
			now := time.Now()
			if r.missing.IsZero() {
				r.missing = now
			}
			if now.After(r.retry) && s.fetch(ctx, r, from, nil) == nil {
				continue
			}
			if now.Sub(r.missing) < s.cfg.times.patience {
				return // the stream holds later batches meanwhile
			}
		}
		s.skip(r, from)
	}
}

// skip continues without the missing batches.
func (s *Subscription) skip(r *rank, from uint64) {
	s.log.Warn("batches of the engine are lost", "from", from)
	r.stream.Skip()
	r.missing = time.Time{}
}

// verify asks the engine for its last batch, which shows whether batches were missed and whether the engine was
// restarted. An engine that keeps no batches at all cannot show it on a connection that was not lost.
func (s *Subscription) verify(ctx context.Context, r *rank) {
	if time.Now().Before(r.retry) {
		return
	}
	var last *position
	switch {
	case !r.unsure.IsZero():
		last = &r.before // a later batch may be the other engine's
	case r.known:
		last = &r.last
	}
	err := s.fetch(ctx, r, 0, last)
	if errors.Is(err, errRestarted) && !r.replayed && r.unsure.IsZero() {
		err = nil
	} else if errors.Is(err, errRestarted) {
		r.stream.Reset("the engine was restarted")
		*r = rank{stream: r.stream, conn: r.conn, why: r.why}
		err = s.fetch(ctx, r, 0, nil)
	}
	if err == nil {
		r.unsure = time.Time{}
	}
	s.settle(ctx, r)
	switch {
	case err == nil && r.missing.IsZero():
		r.suspect("")
	case err != nil && r.why != "": // otherwise nothing points to a loss
		r.suspect(fmt.Sprintf("the batches before the connection to %s are missing: %v", s.addr, err))
	}
}

// maxReplay limits the batches of a replay. Engines keep 10,000 by default.
const maxReplay = 1 << 20

// errRestarted is returned by fetch if the engine does not know the last batch that was received.
var errRestarted = errors.New("the engine was restarted")

// fetch applies a replay of the batches from a number on, and notes when to try again if it fails. If last is not nil,
// the replay is of that batch and those after it, and the error is errRestarted if it does not have that batch.
func (s *Subscription) fetch(ctx context.Context, r *rank, from uint64, last *position) error {
	if last != nil {
		from = last.seq
	}
	n, err := s.request(ctx, r, from, last)
	r.stream.FinishReplay()
	if err == nil || errors.Is(err, errRestarted) {
		r.retry, r.pause = time.Time{}, 0
		if n > 0 {
			s.log.Info("batches replayed", "from", from, "batches", n)
		}
		return err
	}
	r.pause = min(max(2*r.pause, s.cfg.times.minPause), s.cfg.times.maxPause)
	r.retry = time.Now().Add(r.pause)
	if ctx.Err() == nil {
		s.log.Warn("replay failed", "replay", s.replay.String(), "from", from, "err", err, "again_in", r.pause)
	}
	return fmt.Errorf("replay from %s: %w", s.replay, err)
}

// request reads one replay for fetch, and returns the number of its batches except last.
func (s *Subscription) request(ctx context.Context, r *rank, from uint64, last *position) (n int, err error) {
	o := s.socket
	o.Dealer, o.Topics = true, nil
	conn, err := zmtp.Dial(ctx, *s.replay, &o)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.Send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		return 0, err
	}
	for first := true; ; {
		frames, err := conn.Receive(s.cfg.times.timeout)
		if err != nil {
			return n, err
		}
		if err := s.again.decode(frames); err != nil && len(s.again.batches) == 0 {
			return n, err
		}
		for i := range s.again.batches {
			b := &s.again.batches[i]
			switch {
			case b.Seq == kvevent.EndOfReplay && first && last != nil:
				return n, errRestarted // it does not have the last batch that was received, nor a later one
			case b.Seq == kvevent.EndOfReplay:
				return n, nil
			case b.Seq < from:
				continue
			case n == maxReplay:
				return n, fmt.Errorf("more than %d batches", maxReplay)
			}
			r.replayed = true
			if last != nil && b.Seq == last.seq {
				first = false
				if known := !b.Time.IsZero() && !last.at.IsZero(); known && !b.Time.Equal(last.at) {
					return n, errRestarted
				}
				continue
			}
			r.stream.AddReplay(*b)
			if need, missing := r.stream.Need(); first && need != index.None && missing < b.Seq {
				// The engine no longer has those before. Without this, the stream would hold the whole replay.
				r.stream.FinishReplay()
				s.skip(r, missing)
			}
			first = false
			n++
			if !r.known || b.Seq > r.last.seq {
				r.note(b)
			}
		}
	}
}
