// SPDX-License-Identifier: Apache-2.0

// Command kvbench plays recorded workloads through the index and says what it cost: a JSON line per file.
//
//	go run ./examples/kvbench [-rounds N] FILE.kvw ...
//
// Files are KVW1, see package kvw. The members of a line:
//
//   - workload, queries: from the file's header
//   - checksum: the sum over all queries, in file order with events applied, of every worker's matched depth
//   - us_per_query, us_per_query_p50, us_per_query_p99: of a lookup
//   - ns_per_event_block: events, divided by the blocks they store or remove
//   - bytes_per_residency: what the index takes at the end of the file (heap after garbage collection, less what was there before),
//     divided by residencies, which are pairs of a worker and a block
//   - residencies: how many there are at the end of the file
//   - allocs_per_query: over up to 1,000 of the queries, asked again at the end of the file
//   - allocs_per_event: over all events, the growth of the index from nothing included
//   - blocks_per_query, hit_rate: blocks asked for on average, and the share of all of them that the deepest worker of each query held
//   - block_ops_per_s: blocks of all queries and events over the time of both, one thread: how the numbers of others are counted. A query
//     counts all its blocks, also those that the index never looks at. Events are applied when Apply returns, so there is no queue.
//   - rounds, noisy: how often the file was played; whether times differed by more than 15 % between the median and the fastest round
//
// How time is taken: files are decoded before, and a prompt's hashes are put into one buffer just before it is asked, as a caller who has
// computed them would have them. Lookups are timed one by one in a pass over the whole file, by the monotonic clock, less what reading the
// clock takes; the time of a lookup is the median of the rounds, which drops a round in which something else had the processor. Queries and
// events alternate in these files, so there are no runs of queries to put one clock around. Events are timed in a pass of their own
// without queries, as a whole; the median of the rounds counts. Compare figures of one run only.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/weft-go/weft/examples/kvbench/kvw"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "kvbench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("kvbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := flags.Int("rounds", 5, "how often each file is played; medians count")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || *rounds < 1 {
		return errors.New("which workload? Give FILE.kvw, and at least one round")
	}
	out := bufio.NewWriter(stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	for _, name := range flags.Args() {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		w, err := kvw.Read(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f, err := measure(w, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := enc.Encode(f); err != nil {
			return err
		}
		if err := out.Flush(); err != nil { // a line as soon as it is known
			return err
		}
	}
	return nil
}
