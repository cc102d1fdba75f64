// SPDX-License-Identifier: Apache-2.0

// Command kvbench plays recorded workloads through the index and prints one JSON line of measurements for each file.
//
//	go run ./examples/kvbench -h
//
// Files are decoded first, and the hashes of a prompt are copied to one buffer just before the lookup, as if the caller
// had computed them. Lookups are timed one by one in a pass over the whole file with the monotonic clock, less the time
// of reading the clock. The time of a lookup is the median of the rounds, which excludes rounds disturbed by other
// processes. Queries and events alternate in these files, so there are no runs of queries to time together. Events are
// timed together in a separate pass without queries, as the median of the rounds. All times are elapsed time, not CPU
// time, so a busy machine lengthens them, which the field noisy reports. Compare figures only within one run.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/examples/kvbench/kvw"
)

const usage = `
usage: kvbench [-rounds N] FILE.kvw ...

Kvbench plays recorded workloads, in the format KVW1 of package kvw, through the index and measures it. It does not read
stdin.

Each line of output is a JSON object for one file:
  workload, queries     from the header of the file
  checksum              sum over all queries, with events applied in file order, of the matched depth of every worker
  us_per_query, us_per_query_p50, us_per_query_p99
                        elapsed time of a lookup
  ns_per_event_block    elapsed time of the events, divided by the number of blocks that they store or remove
  bytes_per_residency   heap of the index at the end of the file, divided by residencies
  residencies           pairs of a worker and a block at the end of the file
  allocs_per_query      over up to 1,000 of the queries, repeated at the end of the file
  allocs_per_event      over all events, including the growth of the index
  blocks_per_query, hit_rate
                        blocks in a query on average, and the share of them that the deepest worker holds
  block_ops_per_s       blocks of all queries and events, divided by the time of both on one thread
  rounds, noisy         how often the file was played; whether the median differs by more than 15 % from the fastest round

Example:
  kvbench -rounds 3 workload.kvw
`

func main() { cli.Exit("kvbench", run(os.Args[1:], os.Stdout)) }

func run(args []string, stdout io.Writer) error {
	flags := cli.NewFlags("kvbench", usage, stdout)
	rounds := flags.Int("rounds", 5, "`number` of times that each file is played; medians count")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return cli.Usagef("no workload: name a FILE.kvw")
	}
	if *rounds < 1 {
		return cli.Usagef("-rounds %d: want at least 1", *rounds)
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
		if err := out.Flush(); err != nil { // print each line immediately
			return err
		}
	}
	return nil
}
