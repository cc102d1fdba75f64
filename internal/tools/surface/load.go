// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// base is the path of the repository, a prefix of all module paths.
const base = "github.com/weft-go/weft/"

// below returns the import path of a package without the path of the repository.
func below(path string) string { return strings.TrimPrefix(path, base) }

// load returns the packages of the workspace with names, types and the details that mode selects.
func load(root string, mode packages.LoadMode, tests bool) ([]*packages.Package, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dirs, err := workspace(root)
	if err != nil {
		return nil, err
	}
	patterns := make([]string, len(dirs))
	for i, d := range dirs {
		patterns[i] = d + "/..."
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode:  mode | packages.NeedName | packages.NeedTypes,
		Dir:   root,
		Env:   append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")),
		Tests: tests,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %v", p.ID, p.Errors[0])
		}
	}
	return pkgs, nil
}

// workspace returns the directories of the modules of the workspace.
func workspace(root string) ([]string, error) {
	cmd := exec.Command("go", "work", "edit", "-json")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&work); err != nil {
		return nil, err
	}
	var dirs []string
	for _, u := range work.Use {
		dirs = append(dirs, "./"+strings.TrimPrefix(u.DiskPath, "./"))
	}
	return dirs, nil
}
