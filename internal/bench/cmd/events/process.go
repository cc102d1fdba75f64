// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-go/weft/internal/bench"
)

// A child is a process that ends when its input does.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a child with pipes to its input and from its output.
func start(cmd *exec.Cmd) (*child, error) {
	cmd.Stderr = os.Stderr
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
	return &child{cmd, in, bufio.NewReader(out)}, nil
}

// close ends the process.
func (c *child) close() {
	c.in.Close()
	c.cmd.Wait()
}

// A rival is another program in front of the same engine. Its rows have the CPU time of one of its processes.
type rival struct {
	*child
	name, url string
	pid       int
}

// startRival starts NAME=COMMAND, a command of the shell with the engine's address in ENGINE. The command serves until its
// input ends, and prints the line "READY URL PID" before it does.
func startRival(arg, engine string) (*rival, error) {
	name, command, ok := strings.Cut(arg, "=")
	if !ok {
		return nil, fmt.Errorf("rival %q: want NAME=COMMAND", arg)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "ENGINE="+engine)
	c, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("rival %s: %w", name, err)
	}
	r := &rival{child: c, name: name}
	for {
		line, err := c.out.ReadString('\n')
		if n, _ := fmt.Sscanf(line, "READY %s %d", &r.url, &r.pid); n == 2 {
			go io.Copy(io.Discard, c.out)
			return r, nil
		}
		if err != nil {
			c.close()
			return nil, fmt.Errorf("rival %s: no READY line: %w", name, err)
		}
	}
}

// usage is what a process has used so far.
type usage struct {
	cpu           time.Duration
	reads, writes int64 // calls of read and write; 0 where the system does not count them
}

// used returns the usage of a process.
func used(pid int) (usage, error) {
	cpu, err := bench.CPUTimeOf(pid)
	if err != nil {
		return usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	u := usage{cpu: cpu}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if errors.Is(err, os.ErrNotExist) {
		return u, nil
	}
	if err != nil {
		return usage{}, err
	}
	for line := range strings.Lines(string(text)) {
		fmt.Sscanf(line, "syscr: %d", &u.reads)
		fmt.Sscanf(line, "syscw: %d", &u.writes)
	}
	return u, nil
}
