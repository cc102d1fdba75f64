// SPDX-License-Identifier: Apache-2.0

package remote

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Version is the version of npm's tokenizers, the reference.
const Version = "0.23.2"

//go:embed hf.js
var script string

// Install returns a directory with npm's tokenizers: dir if it holds them, else dir after installing them there; ""
// means a directory in the user's cache. The error reports a missing node, npm or network.
func Install(dir string) (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", err
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "weft-bench", "npm-tokenizers-"+Version)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "tokenizers", "package.json")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "tokenizers@"+Version).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm install: %w: %.300s", err, out)
	}
	return dir, nil
}

// StartHF starts Hugging Face's Rust code under node, with one thread. dir is the result of [Install].
func StartHF(dir string) (*Proc, error) {
	cmd := exec.Command("node", "--expose-gc", "-e", script, filepath.Join(dir, "node_modules", "tokenizers"))
	cmd.Env = append(os.Environ(), "TOKENIZERS_PARALLELISM=false", "RAYON_NUM_THREADS=1", "UV_THREADPOOL_SIZE=1")
	return Start(cmd)
}
