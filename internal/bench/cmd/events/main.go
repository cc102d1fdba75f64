// SPDX-License-Identifier: Apache-2.0

// Command events measures the CPU time that the gateway spends on one streamed event: a chunk of one token arrives from
// an engine and leaves to a client.
//
//	go run ./cmd/events [-chats 100] [-tokens 400] [-rounds 5] [-apis chat,messages] [-rival NAME=COMMAND]... [-json] [-check]
//
// The gateway is in this process. The engine and the clients are in a second process, which this command starts, so
// that their time does not count. The floor is a handler in this process that copies the engine's stream as it arrives,
// with one write and flush per read; "proxy" is the reverse proxy of net/http/httputil. The clock runs from the first
// token to the last, after all chats have begun and before any ends.
//
// Rivals are other programs in front of the same engine, measured in the same rounds: -rival starts COMMAND in a shell
// with the engine's address in the variable ENGINE. It must print "READY URL PID", and serve the model m at URL until its
// input ends. PID is the process whose CPU time counts.
//
// In the rows "step", the engine generates a token for each chat every -step, as engines do that batch. In the rows
// "flood", it writes tokens as fast as the connection takes them, so that several arrive in one read.
//
// With -json it prints a line per row instead of a table. With -check it exits with 1 when a goal is missed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// The goals: the greatest CPU time per event in the rows "flood", in microseconds, and the greatest ratio to the floor
// in the rows "step", where the time is that of the system calls.
const (
	floodGoal = 10
	stepGoal  = 1.5
)

// Row is a measurement: medians of the rounds.
type Row struct {
	Name   string  `json:"name"`
	Pace   string  `json:"pace"` // step or flood
	US     float64 `json:"us"`   // CPU time of the process per event, in microseconds
	Floor  float64 `json:"x_floor"`
	Reads  float64 `json:"reads"`          // calls of read per event, also those that find nothing
	Writes float64 `json:"writes"`         // calls of write per event
	Allocs float64 `json:"allocs"`         // per event, of the whole process; 0 for rivals
	Goal   float64 `json:"goal,omitempty"` // in microseconds, or in the rows "step" a ratio to the floor
	Met    bool    `json:"met"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == peerArg {
		if err := peer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "events: peer:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.chats, "chats", 100, "concurrent chats")
	flag.IntVar(&o.tokens, "tokens", 400, "tokens of each chat")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; medians count")
	flag.DurationVar(&o.step, "step", 10*time.Millisecond, "time between two tokens of a chat in the rows \"step\"")
	apis := flag.String("apis", "chat,messages,responses", "APIs, comma-separated")
	paces := flag.String("paces", "step,flood", "paces, comma-separated")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the measured parts to this file, without the floor")
	flag.Func("rival", "`NAME=COMMAND` to measure another program too, repeatable; see the documentation", func(arg string) error {
		o.rivals = append(o.rivals, arg)
		return nil
	})
	lines := flag.Bool("json", false, "print a line of JSON per row")
	check := flag.Bool("check", false, "exit with 1 when a goal is missed")
	flag.Parse()
	o.apis, o.paces, o.profile = strings.Split(*apis, ","), strings.Split(*paces, ","), *profile
	rows, err := run(&o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
	if *lines {
		printLines(rows)
	} else {
		printTable(&o, rows)
	}
	if *check && slices.ContainsFunc(rows, func(r Row) bool { return !r.Met }) {
		os.Exit(1)
	}
}

func printLines(rows []Row) {
	for i := range rows {
		out, err := json.Marshal(&rows[i])
		if err != nil {
			panic(err)
		}
		fmt.Println(string(out))
	}
}

func printTable(o *options, rows []Row) {
	fmt.Printf("%s %s/%s, %d CPUs, %d chats of %d tokens, %d rounds, a step is %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0),
		o.chats, o.tokens, o.rounds, o.step)
	fmt.Printf("%-20s %-6s %12s %8s %8s %8s %8s %6s\n", "", "", "µs per event", "x floor", "reads", "writes", "allocs", "goal")
	for _, r := range rows {
		goal, mark := "", ""
		if r.Goal > 0 {
			goal = fmt.Sprint(r.Goal) + map[string]string{"step": "x", "flood": "µs"}[r.Pace]
		}
		if !r.Met {
			mark = "  missed"
		}
		fmt.Printf("%-20s %-6s %12.2f %8.2f %8.2f %8.2f %8.2f %6s%s\n", r.Name, r.Pace, r.US, r.Floor, r.Reads, r.Writes, r.Allocs, goal, mark)
	}
}

// options are the flags.
type options struct {
	chats, tokens, rounds int
	step                  time.Duration
	apis, paces, rivals   []string
	profile               string
}

// sample is the result of one round of one row, per event.
type sample struct{ us, reads, writes, allocs float64 }

// run measures all rows, one round of each, then the next round.
func run(o *options) ([]Row, error) {
	if o.chats < 1 || o.tokens < 3 || o.rounds < 1 {
		return nil, errors.New("need at least 1 chat, 3 tokens and 1 round")
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := startPeer(exec.Command(exe, peerArg))
	if err != nil {
		return nil, err
	}
	defer p.close()
	s, err := serveAll(p.engine)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var rivals []*rival
	for _, arg := range o.rivals {
		r, err := startRival(arg, p.engine)
		if err != nil {
			return nil, err
		}
		defer r.close()
		rivals = append(rivals, r)
	}
	jobs, err := s.jobs(o.apis, rivals)
	if err != nil {
		return nil, err
	}
	if o.profile != "" {
		jobs = slices.DeleteFunc(jobs, func(j job) bool { return !slices.Contains(o.apis, j.name) })
		f, err := os.Create(o.profile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	var rows []Row
	for _, pace := range o.paces {
		if pace != "step" && pace != "flood" {
			return nil, fmt.Errorf("unknown pace %q: want step or flood", pace)
		}
		samples := make(map[string][]sample)
		for range o.rounds {
			for _, j := range jobs {
				j.Chats, j.Tokens = o.chats, o.tokens
				if pace == "step" {
					j.Step = o.step
				}
				x, err := measure(p, &j)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", j.name, err)
				}
				samples[j.name] = append(samples[j.name], x)
			}
		}
		floor := samples[floorName]
		for _, j := range jobs {
			r := Row{Name: j.name, Pace: pace, Met: true}
			of := func(f func(i int, x sample) float64) float64 {
				var values []float64
				for i, x := range samples[j.name] {
					values = append(values, f(i, x))
				}
				return median(values)
			}
			r.US = of(func(_ int, x sample) float64 { return x.us })
			r.Reads = of(func(_ int, x sample) float64 { return x.reads })
			r.Writes = of(func(_ int, x sample) float64 { return x.writes })
			r.Allocs = of(func(_ int, x sample) float64 { return x.allocs })
			if floor != nil {
				r.Floor = of(func(i int, x sample) float64 { return x.us / floor[i].us })
			}
			switch {
			case !slices.Contains(o.apis, j.name):
			case pace == "flood":
				r.Goal, r.Met = floodGoal, r.US <= floodGoal
			case floor != nil:
				r.Goal, r.Met = stepGoal, r.Floor <= stepGoal
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// measure runs a job. The engine holds the tokens back until the clock runs and the end of the streams until it has
// stopped.
func measure(p *peerProc, j *job) (sample, error) {
	runtime.GC()
	if err := p.begin(j); err != nil {
		return sample{}, err
	}
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	from, err := used(j.pid)
	if err != nil {
		return sample{}, err
	}
	if err := p.stream(); err != nil {
		return sample{}, err
	}
	to, err := used(j.pid)
	if err != nil {
		return sample{}, err
	}
	runtime.ReadMemStats(&b)
	if err := p.end(); err != nil {
		return sample{}, err
	}
	n := float64(j.Chats * (j.Tokens - 2)) // the first and the last are outside
	x := sample{us: float64((to.cpu - from.cpu).Nanoseconds()) / 1e3 / n, reads: float64(to.reads-from.reads) / n, writes: float64(to.writes-from.writes) / n}
	if j.pid == os.Getpid() {
		x.allocs = float64(b.Mallocs-a.Mallocs) / n
	}
	return x, nil
}

// median returns the median, or 0 if there are no values.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}
