// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// DynamoVersion is the version of the crate dynamo-kv-router.
const DynamoVersion = "1.6.1"

//go:embed dynamo/Cargo.toml dynamo/Cargo.lock dynamo/src/main.rs
var dynamoSource embed.FS

// Indexes of Dynamo's crate.
const (
	Radix = "radix" // compressed, one thread
	CRTC  = "crtc"  // the compressed concurrent radix tree
)

// Limits of a call: a workload is read, or played once.
const dynamoLimit = 10 * time.Minute

// installDynamo builds the program, unless it is in the user's cache, and returns its file.
func installDynamo() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "weft-bench", "dynamo-"+DynamoVersion)
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o755); err != nil {
		return "", err
	}
	for _, file := range []string{"Cargo.toml", "Cargo.lock", "src/main.rs"} {
		data, err := dynamoSource.ReadFile("dynamo/" + file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), data, 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("cargo", "build", "--release", "--locked", "--quiet")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CARGO_TARGET_DIR="+filepath.Join(dir, "target"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cargo build: %w: %.500s", err, out)
	}
	return filepath.Join(dir, "target", "release", "dynamo-index"), nil
}

// Dynamo is the process with the indexes of Dynamo's crate. One goroutine at a time.
type Dynamo struct{ proc *Proc }

// StartDynamo starts it. The first time it is built, which takes some minutes. The error reports a missing cargo or crate.
func StartDynamo() (*Dynamo, error) {
	program, err := installDynamo()
	if err != nil {
		return nil, err
	}
	p, err := Start(exec.Command(program))
	if err != nil {
		return nil, err
	}
	return &Dynamo{p}, nil
}

// Load reads a workload, which the next calls play.
func (d *Dynamo) Load(file string) error {
	return d.call("load", map[string]string{"file": file}, new(struct{}))
}

// Events applies all events of the workload to an empty index, without any query, and returns the CPU time of the thread
// that does.
func (d *Dynamo) Events(index string) (time.Duration, error) {
	var r struct {
		NS int64
	}
	err := d.call("events", map[string]string{"name": index}, &r)
	return time.Duration(r.NS), err
}

// Queries plays the whole workload and returns the sum of depths of each query and the nanoseconds that it took.
func (d *Dynamo) Queries(index string) (sums, times []int64, err error) {
	var r struct{ Sums, Times []int64 }
	err = d.call("queries", map[string]string{"name": index}, &r)
	return r.Sums, r.Times, err
}

func (d *Dynamo) call(op string, request map[string]string, reply any) error {
	request["op"] = op
	return d.proc.call(dynamoLimit, "dynamo: "+op, request, reply)
}

// Close ends the process.
func (d *Dynamo) Close() { d.proc.Close() }
