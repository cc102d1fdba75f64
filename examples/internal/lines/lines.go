// SPDX-License-Identifier: Apache-2.0

// Package lines reads the records of the example programs.
package lines

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// Each calls f with every line of the files called names, of stdin if there are none, its line end included. f must
// not keep the line. The first error ends it; one in a file names the file.
func Each(stdin io.Reader, names []string, f func(line []byte) error) error {
	if len(names) == 0 {
		return each(stdin, f)
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = each(file, f)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func each(r io.Reader, f func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
