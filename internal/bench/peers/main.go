// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// peer is one library with one tokenizer loaded.
type peer interface {
	// encode returns the ids of s; added tokens count where the library can have them.
	encode(s string) ([]uint32, error)
	// decode returns the text of ids and is only timed.
	decode(ids []uint32) string
}

// libraries makes a peer of the tokenizer.json at path.
var libraries = map[string]func(path string) (peer, error){
	"sugarme":        newSugarme,
	"pkoukk":         newPkoukk,
	"tiktoken-go":    newTiktokenGo,
	"ollama":         newOllama,
	"go-huggingface": newGoHuggingface,
}

type request struct {
	Op, File, Name, Way string
	Docs                []string
	Reps                int
}

type reply struct {
	Error  string     `json:"error,omitempty"`
	CPU    float64    `json:"cpu_us"`
	Tokens int        `json:"tokens"`
	IDs    [][]uint32 `json:"ids,omitempty"`
}

func main() {
	if len(os.Args) != 2 || libraries[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peers sugarme|pkoukk|tiktoken-go|ollama|go-huggingface")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	out := os.Stdout
	os.Stdout, _ = os.Open(os.DevNull) // some libraries print
	s := server{load: libraries[os.Args[1]], texts: make(map[string][]string)}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		answer := new(reply)
		if err := json.Unmarshal(line, &r); err != nil {
			answer.Error = err.Error()
		} else if answer, err = s.serve(&r); err != nil {
			answer = &reply{Error: err.Error()}
		}
		data, err := json.Marshal(answer)
		if err != nil {
			panic(err)
		}
		if _, err := out.Write(append(data, '\n')); err != nil {
			return
		}
	}
}

type server struct {
	load  func(path string) (peer, error)
	p     peer
	texts map[string][]string
}

// serve handles r. A panic of the library is an error.
func (s *server) serve(r *request) (a *reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			a, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	a = new(reply)
	runtime.GC()
	began := cpuTime()
	switch r.Op {
	case "load":
		s.p, err = s.load(r.File)
	case "text":
		s.texts[r.Name] = r.Docs
	case "encode":
		for range r.Reps {
			for _, doc := range s.texts[r.Name] {
				ids, err := s.p.encode(doc)
				if err != nil {
					return nil, err
				}
				a.Tokens += len(ids)
			}
		}
	case "decode":
		var list [][]uint32
		for _, doc := range s.texts[r.Name] {
			ids, err := s.p.encode(doc)
			if err != nil {
				return nil, err
			}
			list = append(list, ids)
		}
		runtime.GC()
		began = cpuTime()
		for range r.Reps {
			for _, ids := range list {
				s.p.decode(ids)
				a.Tokens += len(ids)
			}
		}
	case "ids":
		for _, doc := range r.Docs {
			a.IDs = append(a.IDs, s.one(doc))
		}
	default:
		return nil, fmt.Errorf("unknown op %q", r.Op)
	}
	a.CPU = float64(cpuTime()-began) / 1e3
	return a, err
}

// one returns the ids of doc, nil when the library fails on it.
func (s *server) one(doc string) (ids []uint32) {
	defer func() {
		if recover() != nil {
			ids = nil
		}
	}()
	ids, err := s.p.encode(doc)
	if err != nil {
		return nil
	}
	if ids == nil {
		ids = []uint32{}
	}
	return ids
}

// cpuTime returns the CPU time of this process in nanoseconds.
func cpuTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
