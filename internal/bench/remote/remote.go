// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Request is one request; which fields count depends on Op. See the package comment.
type Request struct {
	Op   string   `json:"op"`
	File string   `json:"file,omitempty"`
	Name string   `json:"name,omitempty"`
	Docs []string `json:"docs,omitempty"`
	Way  string   `json:"way,omitempty"`
	Reps int      `json:"reps,omitempty"`

	Lists [][]uint32 `json:"lists,omitempty"`
	Skip  bool       `json:"skip,omitempty"`
}

// Reply is a reply of the process.
type Reply struct {
	CPU    float64    `json:"cpu_us"` // of the process, all threads, microseconds
	Tokens int        `json:"tokens"` // of all repetitions together
	IDs    [][]uint32 `json:"ids"`
	Full   []Full     `json:"full"`
	Texts  []string   `json:"texts"`
}

// Full is the whole result of the reference for a text.
type Full struct {
	IDs     []uint32 `json:"ids"`
	Framed  []uint32 `json:"framed"`  // with add_special_tokens
	Offsets []int    `json:"offsets"` // start, end in code points for each of IDs
	Dec     string   `json:"dec"`     // IDs decoded
	Skip    string   `json:"skip"`    // IDs decoded without special tokens
	Error   string   `json:"error"`
}

// ErrTimeout means that the process did not reply in time. It has been killed.
var ErrTimeout = errors.New("no answer in time")

// Proc is a process that serves requests. One goroutine at a time.
type Proc struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	dead error
}

// Start starts cmd, which must not have been started. What it writes to standard error is lost.
func Start(cmd *exec.Cmd) (*Proc, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Proc{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}

// Call sends a request and waits for the reply, at most limit. If none arrives in time, or the process ends, every
// later call fails with the same error.
func (p *Proc) Call(limit time.Duration, r Request) (*Reply, error) {
	reply := new(Reply)
	if err := p.call(limit, r.Op, r, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// call is Call for any kind of request; op names it in errors.
func (p *Proc) call(limit time.Duration, op string, request, reply any) error {
	if p.dead != nil {
		return p.dead
	}
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	late := false
	timer := time.AfterFunc(limit, func() { p.cmd.Process.Kill() })
	_, err = p.in.Write(append(line, '\n'))
	var answer []byte
	if err == nil {
		answer, err = p.out.ReadBytes('\n')
	}
	late = !timer.Stop()
	if err != nil {
		if p.dead = fmt.Errorf("%s: the process ended: %w", op, err); late {
			p.dead = fmt.Errorf("%s: %w: %v", op, ErrTimeout, limit)
		}
		p.Close()
		return p.dead
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(answer, &failed); err != nil {
		return fmt.Errorf("%s: %w in %.100q", op, err, answer)
	}
	if failed.Error != "" {
		short, _, _ := strings.Cut(failed.Error, "\n")
		return fmt.Errorf("%s: %.200s", op, short)
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fmt.Errorf("%s: %w in %.100q", op, err, answer)
	}
	return nil
}

// Close ends the process.
func (p *Proc) Close() {
	if p.dead == nil {
		p.dead = errors.New("closed")
	}
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
