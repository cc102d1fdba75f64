// SPDX-License-Identifier: Apache-2.0

// Command protocols compares the wire formats with plain alternatives: encoding/json into structs with the same fields,
// and appending by hand.
//
//	go run ./cmd/protocols [-rounds N]
//
// It prints a line per measurement and at the end one of JSON. It exits with 1 when a goal is missed. Needs the shared test
// data (WEFT_SHARED) for the large request and the recorded chunks.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/weft-go/weft/internal/bench"
)

func main() {
	rounds := flag.Int("rounds", 21, "rounds of each measurement; the median of their ratios counts")
	root := flag.String("root", "../..", "the root of the repository, to find test data beside it; WEFT_SHARED goes first")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	shared := bench.Shared(*root)
	if shared == "" {
		fmt.Fprintln(os.Stderr, "protocols: no shared test data: set WEFT_SHARED")
		os.Exit(1)
	}
	pairs, err := rows(shared)
	if err != nil {
		fmt.Fprintln(os.Stderr, "protocols:", err)
		os.Exit(1)
	}
	fmt.Printf("%s %s/%s, %d rounds, CPU time, one thread\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, *rounds)
	fmt.Printf("%-46s %12s %12s %7s %6s %7s\n", "", "weft ns", "plain ns", "ratio", "goal", "allocs")
	var all []bench.Verdict
	met := true
	for i := range pairs {
		v := pairs[i].Measure(*rounds)
		mark := ""
		if !v.Met {
			met, mark = false, "  missed"
		}
		fmt.Printf("%-46s %12.1f %12.1f %7.3f %6.2f %7.1f%s\n", v.Name, v.OursNS, v.TheirsNS, v.Ratio, v.Goal, v.Allocs, mark)
		all = append(all, v)
	}
	out, err := json.Marshal(all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "protocols:", err)
		os.Exit(1)
	}
	fmt.Println(string(out))
	if !met {
		os.Exit(1)
	}
}
