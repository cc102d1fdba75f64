// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"log/slog"
	"time"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// An Option configures a [Subscription].
type Option func(*config)

type config struct {
	format kvevent.Format
	replay string
	rank   int
	topics []string
	log    *slog.Logger
	times  times
}

// times are the durations that tests shorten.
type times struct {
	heartbeat time.Duration // between PINGs
	timeout   time.Duration // of a handshake, a frame, a message of a replay
	check     time.Duration // silence after which the last batch is requested
	first     time.Duration // the same after a connection was established
	minPause  time.Duration // between attempts to connect
	maxPause  time.Duration
	patience  time.Duration // for a replay socket that does not respond
}

var defaultTimes = times{
	heartbeat: 5 * time.Second, timeout: 10 * time.Second, check: 10 * time.Second, first: time.Second,
	minPause: 100 * time.Millisecond, maxPause: 5 * time.Second, patience: 30 * time.Second,
}

// Replay sets the address of the engine's replay socket, in the form of the events address without "@". It has no
// effect on [SubscribeFunc], whose publishers have a replay socket each.
func Replay(address string) Option { return func(c *config) { c.replay = address } }

// Format sets the encoding of the events; the default is [kvevent.VLLM]. For Dynamo's event plane it is
// [kvevent.Dynamo], and the streams begin with batch 1 ([index.StreamOptions.First]).
func Format(f kvevent.Format) Option { return func(c *config) { c.format = f } }

// Topic subscribes to topics with the given prefix. It may be used more than once. The default is all topics.
func Topic(prefix string) Option { return func(c *config) { c.topics = append(c.topics, prefix) } }

// Rank adds n to the ports of both addresses, as vLLM and SGLang do for data-parallel rank n.
func Rank(n int) Option { return func(c *config) { c.rank = n } }

// Logger logs connections, losses and replays to l. The default is to discard logs.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }
