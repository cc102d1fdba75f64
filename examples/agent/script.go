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

// Without a server the program plays against an embedded engine. Folder, tools, tokens, stream and parsing are real; the
// words of the model are written here, as a model of the family hermes writes them.

// play starts the engine on loopback.
func play() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	e := vllm.New(mini.Load(), &vllm.Options{Script: script, Timing: vllm.Timing{DecodePerToken: 12 * time.Millisecond}})
	server, done := &http.Server{Handler: e}, make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l) // ends with ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() { e.Close(); server.Close(); <-done }, nil
}

const look = `<think>
I do not know this folder. I need a look at what is there, and the places where programs begin.
</think>

I will look around.
<tool_call>
{"name": "list_files", "arguments": {"path": "."}}
</tool_call>
<tool_call>
{"name": "search", "arguments": {"pattern": "func main\\("}}
</tool_call>
Both tools are at work while I still write this line, and the first of them may well be done before I am.`

const read = `<think>
One file should tell me what this is.
</think>

<tool_call>
{"name": "read_file", "arguments": {"path": "%s"}}
</tool_call>
A harness that waits for the end of my turn would not have opened the file yet, while this one is done by now.`

const answer = `There are %d files at the top of this folder. %s begins with “%s”.
These words were scripted; with -url a model finds its own.`

var (
	listed = regexp.MustCompile(`(?m)^(\S+) \d+ bytes$`)
	readme = regexp.MustCompile(`(?m)^(README\S*) \d+ bytes$`)
	opened = regexp.MustCompile(`(?m)^1  (.*)$`)
)

// script reads the results in the prompt, as a model would, and says what comes next.
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
	return vllm.Reply{Text: "I found nothing here that I could read."}
}
