// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weft-go/weft/protocols/replay"
)

// Sizes of the parts that all turns of a conversation share.
const (
	toolCount  = 30
	systemSize = 5 << 10 // bytes
)

// corpus holds the texts that conversations are made of: net/http and Newton's Opticks from Go's source tree.
type corpus struct {
	code  []string // lines
	prose []string // sentences
}

// loadCorpus reads the texts of the go command's source tree.
func loadCorpus() (*corpus, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	var texts [3]string
	for i, name := range []string{"net/http/server.go", "net/http/transport.go", "testdata/Isaac.Newton-Opticks.txt"} {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "src", name))
		if err != nil {
			return nil, err
		}
		texts[i] = strings.ToValidUTF8(string(data), "?")
	}
	return &corpus{strings.SplitAfter(texts[0]+texts[1], "\n"), strings.SplitAfter(texts[2], ". ")}, nil
}

// A conversation is an agent's session in the Messages API, in the form of Claude Code: a billing header that changes
// with each session, tools after the messages, cache_control on the last block of each request, and signed thinking.
//
//	{"model":"m","messages":[…, the last block,"cache_control":{…}}]}],"system":[…],"tools":[…],…}
//	 front, up to ends[i]                      mark                   tail
type conversation struct {
	id    string // of the session
	front []byte // all messages, without the marks
	ends  []int  // end of the last block of each request, without the brace that closes it
	tail  []byte // everything after the messages
}

const mark = `,"cache_control":{"type":"ephemeral"}}]}`

// newConversation returns a conversation with the given number of requests. Each but the first adds a response with two
// calls and their results, together about 1,000 tokens. No two seeds have the same text; they share the tools and all
// but the beginning of the system text. A user's message comes with every twelfth request of the first half.
func newConversation(c *corpus, signer *replay.Signer, seed uint64, requests int) *conversation {
	r := rand.New(rand.NewPCG(seed, 17))
	v := &conversation{id: fmt.Sprintf("00000000-0000-4000-8000-%012x", seed)}
	v.front = append(v.front, `{"model":"`+modelName+`","messages":[`...)
	v.front = append(v.front, `{"role":"user","content":[{"type":"text","text":"<system-reminder>\nA repository with Go code.\n</system-reminder>"},`...)
	v.front = fmt.Appendf(v.front, `{"type":"text","text":%s`, quoted(fmt.Sprintf("Task %d: %s", seed, c.sentences(r, 3))))
	v.ends = append(v.ends, len(v.front))
	for i := 1; i < requests; i++ {
		v.front = append(v.front, "}]}"...)
		thought := c.sentences(r, 2)
		v.front = fmt.Appendf(v.front, `,{"role":"assistant","content":[{"type":"thinking","thinking":%s,"signature":%s}`,
			quoted(thought), quoted(string(signer.AppendSigned(nil, []byte(thought)))))
		v.front = fmt.Appendf(v.front, `,{"type":"text","text":%s}`, quoted(c.sentences(r, 1)))
		first := 1 + r.IntN(900)
		file := fmt.Sprintf("/work/repo/internal/server/conn_%d.go", r.IntN(90))
		old, changed := c.lines(r, 3, 140), c.lines(r, 4, 180)
		v.front = fmt.Appendf(v.front, `,{"type":"tool_use","id":"toolu_%d_%da","name":"read_file","input":{"file_path":%s,"offset":%d,"limit":40}}`, seed, i, quoted(file), first)
		v.front = fmt.Appendf(v.front, `,{"type":"tool_use","id":"toolu_%d_%db","name":"edit_file","input":{"file_path":%s,"old_string":%s,"new_string":%s}}]}`,
			seed, i, quoted(file), quoted(old), quoted(changed))
		var shown strings.Builder
		for j, line := range strings.SplitAfter(c.lines(r, 40, 1900), "\n") {
			fmt.Fprintf(&shown, "%6d\t%s", first+j, line)
		}
		v.front = fmt.Appendf(v.front, `,{"role":"user","content":[{"tool_use_id":"toolu_%d_%da","type":"tool_result","content":%s,"is_error":false}`, seed, i, quoted(shown.String()))
		if i%12 == 0 && i < requests/2 {
			v.front = fmt.Appendf(v.front, `,{"tool_use_id":"toolu_%d_%db","type":"tool_result","content":"Updated.","is_error":false},{"type":"text","text":%s`, seed, i, quoted(c.sentences(r, 1)))
		} else {
			v.front = fmt.Appendf(v.front, `,{"tool_use_id":"toolu_%d_%db","type":"tool_result","content":%s,"is_error":false`, seed, i, quoted("The file "+file+" has been updated."))
		}
		v.ends = append(v.ends, len(v.front))
	}
	v.tail = c.tail(seed)
	return v
}

// tail returns the part of the bodies after the messages.
func (c *corpus) tail(seed uint64) []byte {
	r := rand.New(rand.NewPCG(0, 17)) // the same tools and system text in each conversation
	var b bytes.Buffer
	fmt.Fprintf(&b, `],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.%x; cc_entrypoint=cli;"}`, seed&0xfff)
	fmt.Fprintf(&b, `,{"type":"text","text":"You are agent %d.","cache_control":{"type":"ephemeral"}}`, seed)
	fmt.Fprintf(&b, `,{"type":"text","text":%s,"cache_control":{"type":"ephemeral"}}],"tools":[`, quoted(c.text(r, systemSize)))
	for i := range toolCount {
		name := fmt.Sprintf("tool_%d", i)
		if i < 2 {
			name = []string{"read_file", "edit_file"}[i]
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"%s","description":%s,"input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{`+
			`"file_path":{"type":"string","description":%s},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer","exclusiveMinimum":0},`+
			`"mode":{"type":"string","enum":["fast","exact"]}},"required":["file_path"],"additionalProperties":false}}`, name, quoted(c.text(r, 150)), quoted(c.sentences(r, 1)))
	}
	b.WriteString(`],"metadata":{"user_id":"user"},"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2000},"stream":true}`)
	return b.Bytes()
}

// reader returns a reader of the body of a request. It copies nothing before the handler reads.
func (v *conversation) reader(request int) io.Reader {
	return io.MultiReader(bytes.NewReader(v.front[:v.ends[request]]), strings.NewReader(mark), bytes.NewReader(v.tail))
}

// size returns the length of the body of a request, in bytes.
func (v *conversation) size(request int) int { return v.ends[request] + len(mark) + len(v.tail) }

// body returns the body of a request.
func (v *conversation) body(request int) []byte {
	b := make([]byte, 0, v.size(request)+bytes.MinRead)
	return append(append(append(b, v.front[:v.ends[request]]...), mark...), v.tail...)
}

// sentences returns n sentences from a random position.
func (c *corpus) sentences(r *rand.Rand, n int) string {
	at := r.IntN(len(c.prose) - n)
	s := strings.Join(c.prose[at:at+n], "")
	return strings.TrimSpace(s[:min(len(s), 250*n)])
}

// lines returns up to n lines of code of at most size bytes together, from a random position.
func (c *corpus) lines(r *rand.Rand, n, size int) string {
	at := r.IntN(len(c.code) - n)
	s := strings.Join(c.code[at:at+n], "")
	return strings.ToValidUTF8(s[:min(len(s), size)], "")
}

// text returns size bytes of prose.
func (c *corpus) text(r *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(c.sentences(r, 4))
		b.WriteByte('\n')
	}
	return strings.ToValidUTF8(b.String()[:size], "")
}

// quoted returns s as JSON writes it in JavaScript, without escaping <, > and &.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(strings.ToValidUTF8(s, "")); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
