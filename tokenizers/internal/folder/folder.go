// SPDX-License-Identifier: Apache-2.0

// Package folder lists the files of a model's folder for error messages.
package folder

import "io/fs"

// Names returns the names in the root of fsys, sorted; those of directories end in a slash. The error is that of a
// folder that does not exist or cannot be read.
func Names(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		if e.IsDir() {
			names[i] += "/"
		}
	}
	return names, nil
}
