// SPDX-License-Identifier: Apache-2.0

//go:build !(386 || arm || mips || mipsle)

package sugarme

import (
	"bytes"
	"errors"
	"log"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"
)

// What would end the process is an error, what the engine logs is dropped, what others log is not.
func TestMuzzle(t *testing.T) {
	var out bytes.Buffer
	before := log.Writer()
	log.SetOutput(&out)
	defer log.SetOutput(before)
	err := shielded("encode", func() error {
		log.Print("from elsewhere")
		tokenizer.NewInputSequence(1) // log.Fatalf
		return nil
	})
	if !errors.Is(err, ErrEngine) || !strings.Contains(err.Error(), "log.Fatal: ") {
		t.Errorf("got %v", err)
	}
	err = shielded("load", func() error {
		_, err := pretrained.CreateModel(&tokenizer.Config{}) // logs that it guesses a type
		return err
	})
	if !errors.Is(err, ErrEngine) {
		t.Errorf("got %v", err)
	}
	log.Print("afterwards")
	if s := out.String(); !strings.Contains(s, "from elsewhere") || !strings.Contains(s, "afterwards") || strings.Contains(s, "type") {
		t.Errorf("logged %q", s)
	}
	if log.Writer() != &out {
		t.Error("the logger's output is not what it was")
	}
}

func TestConcurrent(t *testing.T) {
	tok, err := Load(os.DirFS(wordLevel), &Options{Enable: true, Vectors: golden(t)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if ids, err := tok.AppendEncode(nil, "the router sends"); err != nil || !equal(ids, []uint32{1, 2, 3}) {
					t.Errorf("got %v, %v", ids, err)
				}
			}
		})
	}
	wg.Wait()
}
