// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// A Record is one line of input that is not blank.
type Record struct {
	JSON []byte // the line with its line ending; valid until the next record
	File string // the name of the file, or "" for stdin
	Line int    // counted from 1 in its file
}

// String returns the position of the record, for messages.
func (r *Record) String() string {
	if r.File == "" {
		return fmt.Sprintf("line %d", r.Line)
	}
	return fmt.Sprintf("line %d of %s", r.Line, r.File)
}

// Records reads records and prints one JSON line for each.
type Records struct {
	out           *bufio.Writer
	enc           *json.Encoder
	total, failed int
	firstFailed   string
	stdin         io.Reader
	files         []string
}

// NewRecords returns a reader of the records in files, or in stdin if files is empty. Finish flushes the output.
func NewRecords(stdin io.Reader, files []string, stdout io.Writer) *Records {
	r := &Records{out: bufio.NewWriter(stdout), stdin: stdin, files: files}
	r.enc = json.NewEncoder(r.out)
	r.enc.SetEscapeHTML(false)
	return r
}

// Each calls f for each record and prints the result that f returns. A record is bad if ok is false; Each continues
// with the next. It returns the first error of f, of reading or of writing.
func (r *Records) Each(f func(rec *Record) (result any, ok bool, err error)) error {
	err := EachLine(r.stdin, r.files, func(rec *Record) error {
		result, ok, err := f(rec)
		if err != nil {
			return err
		}
		if r.total++; !ok {
			if r.failed++; r.failed == 1 {
				r.firstFailed = rec.String()
			}
		}
		return r.Print(result)
	})
	if err != nil {
		r.out.Flush() // earlier output; err takes precedence over an error here
	}
	return err
}

// Print prints v as a line of JSON.
func (r *Records) Print(v any) error { return r.enc.Encode(v) }

// Finish writes buffered output. It returns an error if any record was bad.
func (r *Records) Finish() error {
	if err := r.out.Flush(); err != nil {
		return err
	}
	if r.failed > 0 {
		return fmt.Errorf("%d of %d records have errors, the first is %s", r.failed, r.total, r.firstFailed)
	}
	return nil
}

// EachFile calls f for each file, or for stdin, with an empty name, if files is empty. It returns the first error.
func EachFile(stdin io.Reader, files []string, f func(name string, in io.Reader) error) error {
	if len(files) == 0 {
		return f("", stdin)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = f(name, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// EachLine calls f for each record in files, or in stdin if files is empty. It returns the first error.
func EachLine(stdin io.Reader, files []string, f func(rec *Record) error) error {
	return EachFile(stdin, files, func(name string, in io.Reader) error { return each(in, name, f) })
}

func each(in io.Reader, name string, f func(rec *Record) error) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := f(&Record{line, name, n}); err != nil {
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
