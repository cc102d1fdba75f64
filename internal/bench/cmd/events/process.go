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

// A rival is another program in front of the same engine. Its rows have the CPU time of one of its processes.
type rival struct {
	name, url string
	pid       int
	cmd       *exec.Cmd
	in        io.Closer
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
	r := &rival{name: name, cmd: cmd, in: in}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "READY %s %d", &r.url, &r.pid); n == 2 {
			go io.Copy(io.Discard, out)
			return r, nil
		}
	}
	r.close()
	return nil, fmt.Errorf("rival %s: ended before it was ready", name)
}

func (r *rival) close() {
	r.in.Close()
	r.cmd.Wait()
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
