// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/tokenizers/mini"
)

// This file is structured as follows: what the two processes exchange, the end in the measuring process, then the
// engine and the clients of the second process.

// peerArg is the argument that makes this program the second process.
const peerArg = "peer"

// job is a line to the second process: requests to send at the same time.
type job struct {
	URL    string        `json:"url"`
	Body   string        `json:"body"`
	Chats  int           `json:"chats"`
	Tokens int           `json:"tokens"` // of each chat
	Step   time.Duration `json:"step"`   // between two tokens; 0 means as fast as the connection takes them

	name string // of its row
	pid  int    // of the process that is measured
}

// peerProc is the second process.
type peerProc struct {
	*child
	engine string // address
}

func startPeer(cmd *exec.Cmd) (*peerProc, error) {
	c, err := start(cmd)
	if err != nil {
		return nil, err
	}
	p := &peerProc{child: c}
	if p.engine, err = p.line(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *peerProc) line() (string, error) {
	s, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("second process: %w", err)
	}
	s = strings.TrimSpace(s)
	if why, ok := strings.CutPrefix(s, "error: "); ok {
		return "", errors.New(why)
	}
	return s, nil
}

// say sends a line and waits for the reply want.
func (p *peerProc) say(line, want string) error {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return err
	}
	got, err := p.line()
	if err == nil && got != want {
		err = fmt.Errorf("second process: got %q, want %q", got, want)
	}
	return err
}

// begin sends the requests and returns when each client has received its first token.
func (p *peerProc) begin(j *job) error {
	line, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return p.say(string(line), "begun")
}

// stream returns when each client has received its last but one token.
func (p *peerProc) stream() error { return p.say("stream", "streamed") }

// end returns when the responses have ended.
func (p *peerProc) end() error { return p.say("end", "ended") }

// peer is the second process: the engine and the clients.
func peer(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e := newEngine()
	go http.Serve(l, e)
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var j job
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			return err
		}
		r := e.start(&j)
		errs := make(chan error, j.Chats)
		for range j.Chats {
			go func() { errs <- r.chat() }()
		}
		for _, phase := range []struct {
			done  *sync.WaitGroup
			reply string
			next  chan struct{}
		}{{&r.begun, "begun", r.stream}, {&r.streamed, "streamed", r.end}} {
			if err := wait(phase.done, errs); err != nil {
				fmt.Fprintf(out, "error: %v\n", err)
				return nil
			}
			fmt.Fprintln(out, phase.reply)
			if !lines.Scan() {
				return lines.Err()
			}
			close(phase.next)
		}
		for range j.Chats {
			if err := <-errs; err != nil {
				fmt.Fprintf(out, "error: %v\n", err)
				return nil
			}
		}
		fmt.Fprintln(out, "ended")
	}
	return lines.Err()
}

// wait waits for done, or for the first error of a chat.
func wait(done *sync.WaitGroup, errs <-chan error) error {
	ok := make(chan struct{})
	go func() { done.Wait(); close(ok) }()
	select {
	case <-ok:
		return nil
	case err := <-errs:
		if err == nil {
			err = errors.New("a response ended early")
		}
		return err
	}
}

// round is the state of a job.
type round struct {
	*job
	begun, streamed sync.WaitGroup // of the clients
	stream, end     chan struct{}  // closed when the engine may continue

	mu    sync.Mutex
	steps []chan struct{} // closed at step i
}

// The first token of a response and its last one before the finish reason. No other token has these texts, so that
// clients recognize them.
const (
	firstText = " user"
	lastText  = " from"
)

// engine is an http.Handler that streams like vLLM: completions with token ids, and chats for programs that have their
// engine render the prompt.
type engine struct {
	completions, chats answer

	mu    sync.Mutex
	round *round
}

// answer contains the pieces of a stream.
type answer struct {
	words  [][]byte // events, one token each
	first  []byte
	last   []byte // before the one with the finish reason
	finish []byte
}

// newEngine returns an engine that repeats a text.
func newEngine() *engine {
	return &engine{
		completions: newAnswer(`"id":"cmpl-0b5c7b1f7c6b4d0f","object":"text_completion","created":1795392000,"model":"m"`, `{"index":0,"text":%s,`+
			`"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":[%d],"prompt_token_ids":null}`),
		chats: newAnswer(`"id":"chatcmpl-0b5c7b1f7c6b4d0f","object":"chat.completion.chunk","created":1795392000,"model":"m"`, `{"index":0,"delta":{"content":%s},`+
			`"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":[%d]}`),
	}
}

// newAnswer returns the stream of chunks with the fields head, whose choices have the form choice.
func newAnswer(head, choice string) answer {
	tok := mini.Load()
	const text = "The reader returns the next event, or nothing if more input is needed. It keeps the bytes that it has not used, " +
		"so the caller may pass pieces of any size. An event ends at an empty line; the names of its fields come before a colon."
	chunk := func(id uint32, finish string) []byte {
		piece, err := json.Marshal(string(tok.AppendDecode(nil, []uint32{id}, false)))
		if err != nil {
			panic(err)
		}
		return fmt.Appendf(nil, "data: {"+head+`,"choices":[`+choice+"]}\n\n", piece, finish, id)
	}
	one := func(text string) uint32 {
		ids := tok.AppendEncode(nil, text)
		if len(ids) != 1 {
			panic("events: " + text + " is not one token")
		}
		return ids[0]
	}
	a := answer{first: chunk(one(firstText), "null"), last: chunk(one(lastText), "null"), finish: chunk(one(" end"), `"stop"`)}
	a.finish = append(a.finish, "data: {"+head+`,"choices":[],"usage":{"prompt_tokens":10,"total_tokens":20,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n"...)
	for _, id := range tok.AppendEncode(nil, text) {
		a.words = append(a.words, chunk(id, "null"))
	}
	return a
}

// start makes j the current job.
func (e *engine) start(j *job) *round {
	r := &round{job: j, stream: make(chan struct{}), end: make(chan struct{})}
	r.begun.Add(j.Chats)
	r.streamed.Add(j.Chats)
	if j.Step > 0 {
		for range j.Tokens {
			r.steps = append(r.steps, make(chan struct{}))
		}
		go func() {
			<-r.stream
			t := time.NewTicker(j.Step)
			defer t.Stop()
			for _, c := range r.steps {
				<-t.C
				close(c)
			}
		}()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.round = r
	return r
}

// ServeHTTP streams a response. It is healthy and has the model m.
func (e *engine) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var a *answer
	switch q.URL.Path {
	case "/health":
		return
	case "/v1/models":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model","created":1795392000,"owned_by":"vllm","root":"m","max_model_len":131072}]}`)
		return
	case "/v1/completions":
		a = &e.completions
	case "/v1/chat/completions":
		a = &e.chats
	default:
		http.NotFound(w, q)
		return
	}
	var body struct {
		Stream bool `json:"stream"`
		IDs    bool `json:"return_token_ids"`
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil || !body.Stream || !body.IDs && a == &e.completions {
		http.Error(w, "need a request for a stream, of completions with return_token_ids", http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	r := e.round
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	send := func(chunk []byte) {
		w.Write(chunk) // an error ends the request's context
		rc.Flush()
	}
	send(a.first)
	select {
	case <-r.stream:
	case <-q.Context().Done():
		return
	}
	for i := range r.Tokens - 3 {
		if r.steps != nil {
			<-r.steps[i]
		}
		send(a.words[i%len(a.words)])
	}
	if r.steps != nil {
		<-r.steps[r.Tokens-3]
	}
	send(a.last)
	select {
	case <-r.end:
	case <-q.Context().Done():
		return
	}
	w.Write(a.finish)
}

// chat sends a request and reads its response.
func (r *round) chat() error {
	resp, err := http.Post(r.URL, "application/json", strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	var window []byte // the last two reads: an event may be split
	begun, streamed := false, false
	for buf := make([]byte, 64<<10); ; {
		n, err := resp.Body.Read(buf)
		window = append(window, buf[:n]...)
		if !begun && bytes.Contains(window, []byte(firstText)) {
			begun = true
			r.begun.Done()
		}
		if !streamed && bytes.Contains(window, []byte(lastText)) {
			streamed = true
			r.streamed.Done()
		}
		window = append(window[:0], window[max(0, len(window)-len(lastText)):]...)
		if err == io.EOF && begun && streamed {
			return nil
		}
		if err != nil {
			return fmt.Errorf("response ended before its last token: %w", err)
		}
	}
}
