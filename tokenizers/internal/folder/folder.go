// SPDX-License-Identifier: Apache-2.0

// Package folder names a model's folder and its files in error messages.
package folder

import (
	"io/fs"
	"reflect"
	"strings"
)

// Path returns the path of a file system made by os.DirFS, or "" for others.
func Path(fsys fs.FS) string {
	if v := reflect.ValueOf(fsys); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// Join returns the path of a file in dir. Either may be empty.
func Join(dir, file string) string {
	if dir == "" || file == "" {
		return dir + file
	}
	return strings.TrimSuffix(dir, "/") + "/" + file
}

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
