// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/tokenizers/mini"
)

// Without -url the program uses an embedded engine. Directory, tools, tokens, stream and parsing are real; only the
// model's output is scripted, in the form of the family hermes.

// play starts the engine on a loopback address.
func play() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	e := vllm.New(mini.Load(), &vllm.Options{Script: script, Timing: vllm.Timing{DecodePerToken: 12 * time.Millisecond}})
	server, done := &http.Server{Handler: e}, make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l) // returns ErrServerClosed after stop
	}()
	return "http://" + l.Addr().String(), func() { e.Close(); server.Close(); <-done }, nil
}

const look = `<think>
I do not know this directory. I need to see what is in it, and where programs begin.
</think>

I will look around.
<tool_call>
{"name": "list_files", "arguments": {"path": "."}}
</tool_call>
<tool_call>
{"name": "search", "arguments": {"pattern": "func main\\("}}
</tool_call>
Both tools are running while I write this line, and the first may finish before I do.`

const read = `<think>
One file should tell me what this is.
</think>

<tool_call>
{"name": "read_file", "arguments": {"path": "%s"}}
</tool_call>
A harness that waits for the end of my turn would not have opened the file yet; this one has already read it.`

const answer = `There are %d files at the top of this directory. %s begins with “%s”.
This text is scripted; with -url, a model writes the answer.`

var (
	listed = regexp.MustCompile(`(?m)^(\S+) \d+ bytes$`)
	readme = regexp.MustCompile(`(?m)^(README\S*) \d+ bytes$`)
	opened = regexp.MustCompile(`(?m)^1  (.*)$`)
)

// script returns the next output, depending on the tool results in the prompt.
func script(p vllm.Prompt) vllm.Reply {
	files := listed.FindAllStringSubmatch(p.Text, -1)
	file := readme.FindStringSubmatch(p.Text)
	if file == nil && files != nil {
		file = files[0]
	}
	begins := opened.FindStringSubmatch(p.Text)
	switch turn := strings.Count(p.Text, "<|im_start|>assistant\n"); {
	case turn == 1:
		return vllm.Reply{Text: look}
	case turn == 2 && file != nil:
		return vllm.Reply{Text: fmt.Sprintf(read, file[1])}
	case turn == 3 && begins != nil:
		return vllm.Reply{Text: fmt.Sprintf(answer, len(files), file[1], begins[1])}
	}
	return vllm.Reply{Text: "I found nothing here that I can read."}
}
