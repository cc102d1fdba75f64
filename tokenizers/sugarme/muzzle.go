// SPDX-License-Identifier: Apache-2.0

package sugarme

import (
	"io"
	"log"
	"runtime"
	"strings"
	"sync"
)

// This file deals with log.Fatal, which the engine calls where it should return an error. log.Fatal writes its
// message and then ends the process; a writer that panics gets in between. The standard logger is the only one
// the engine has, so its output is wrapped while a call runs.

var guard struct {
	sync.Mutex
	calls int
	inner *guardWriter
}

// muzzle wraps the standard logger's output until release is called.
func muzzle() (release func()) {
	guard.Lock()
	defer guard.Unlock()
	if guard.calls++; guard.calls == 1 {
		guard.inner = &guardWriter{log.Writer()}
		log.SetOutput(guard.inner)
	}
	return func() {
		guard.Lock()
		defer guard.Unlock()
		if guard.calls--; guard.calls == 0 && log.Writer() == io.Writer(guard.inner) {
			log.SetOutput(guard.inner.to)
		}
	}
}

// fatal is the panic value that replaces the exit of the process.
type fatal string

// guardWriter drops the engine's log output and passes on the rest.
type guardWriter struct{ to io.Writer }

// Write panics with fatal if the engine called log.Fatal.
func (w *guardWriter) Write(p []byte) (int, error) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	deadly, theirs := false, false
	for more := true; more && !theirs; {
		var f runtime.Frame
		f, more = frames.Next()
		deadly = deadly || strings.HasPrefix(f.Function, "log.Fatal")
		theirs = strings.HasPrefix(f.Function, enginePath)
	}
	switch {
	case !theirs:
		return w.to.Write(p)
	case deadly:
		panic(fatal("log.Fatal: " + strings.TrimSpace(string(p))))
	}
	return len(p), nil
}
