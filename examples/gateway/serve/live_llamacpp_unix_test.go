// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A liveLlama is a llama.cpp server. WEFT_LIVE_LLAMACPP is its program; .ci/live builds it.
type liveLlama struct {
	t    *testing.T
	file string // of the model
	port string
	args []string
	cmd  *exec.Cmd
	done chan struct{}
}

func (l *liveLlama) url() string { return "http://127.0.0.1:" + l.port }

// start starts the server and waits until it is ready.
func (l *liveLlama) start() {
	l.t.Helper()
	args := append([]string{"-m", l.file, "--host", "127.0.0.1", "--port", l.port, "-np", "2", "-t", "1", "-tb", "1", "--poll", "0", "--no-ui", "--jinja"}, l.args...)
	log, err := os.Create(filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "llamacpp-"+strings.ReplaceAll(l.t.Name(), "/", "-")+".log"))
	require.NoError(l.t, err)
	defer log.Close()
	l.cmd, l.done = exec.Command(os.Getenv("WEFT_LIVE_LLAMACPP"), args...), make(chan struct{})
	l.cmd.Stdout, l.cmd.Stderr = log, log
	require.NoError(l.t, l.cmd.Start())
	cmd, done := l.cmd, l.done
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	l.t.Cleanup(l.kill)
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(l.url() + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-done:
			l.t.Fatalf("llama-server has ended; see %s", log.Name())
		default:
		}
	}
	l.t.Fatalf("llama-server was not ready in 2 minutes; see %s", log.Name())
}

// kill ends the server at once, as a crash does.
func (l *liveLlama) kill() {
	l.cmd.Process.Kill()
	<-l.done
}

func needsLlama(t *testing.T) {
	if os.Getenv("WEFT_LIVE_LLAMACPP") == "" {
		t.Skip("needs a llama.cpp (run .ci/live)")
	}
}

// Types of values in GGUF files.
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufString  = 8
	ggufArray   = 9
)

// writeGGUF writes a llama of one layer with random weights and the tokens of a tokenizer.
func writeGGUF(t *testing.T, file string, tokenizer map[string]any, size int64) {
	tokens, kinds := make([]string, size), make([]int32, size)
	for i := range tokens {
		tokens[i], kinds[i] = fmt.Sprint("[unused", i, "]"), 5
	}
	number := func(v any) int64 {
		n, err := v.(json.Number).Int64()
		require.NoError(t, err)
		return n
	}
	model := tokenizer["model"].(map[string]any)
	for text, id := range model["vocab"].(map[string]any) {
		tokens[number(id)], kinds[number(id)] = text, 1
	}
	eos := int64(0)
	for _, a := range tokenizer["added_tokens"].([]any) {
		a := a.(map[string]any)
		id, text := number(a["id"]), a["content"].(string)
		tokens[id], kinds[id] = text, 4
		if a["special"] == true {
			kinds[id] = 3
		}
		if text == "<|im_end|>" {
			eos = id
		}
	}
	var merges []string
	for _, m := range model["merges"].([]any) {
		pair := m.([]any)
		merges = append(merges, pair[0].(string)+" "+pair[1].(string))
	}

	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				binary.Write(&b, binary.LittleEndian, uint64(len(s)))
				b.WriteString(s)
				continue
			}
			require.NoError(t, binary.Write(&b, binary.LittleEndian, v))
		}
	}
	const width, hidden, window = 32, 64, 32768
	type tensor struct {
		name string
		dims []uint64
	}
	tensors := []tensor{{"token_embd.weight", []uint64{width, uint64(size)}}, {"output_norm.weight", []uint64{width}}}
	for _, l := range []tensor{
		{"attn_norm", []uint64{width}}, {"attn_q", []uint64{width, width}}, {"attn_k", []uint64{width, width}}, {"attn_v", []uint64{width, width}},
		{"attn_output", []uint64{width, width}}, {"ffn_norm", []uint64{width}}, {"ffn_gate", []uint64{width, hidden}}, {"ffn_up", []uint64{width, hidden}},
		{"ffn_down", []uint64{hidden, width}},
	} {
		tensors = append(tensors, tensor{"blk.0." + l.name + ".weight", l.dims})
	}
	values := 0
	var meta bytes.Buffer
	set := func(key string, kind uint32, value ...any) {
		values++
		put(key, kind)
		put(value...)
	}
	for key, n := range map[string]uint32{
		"llama.context_length": window, "llama.embedding_length": width, "llama.block_count": 1, "llama.feed_forward_length": hidden,
		"llama.attention.head_count": 2, "llama.attention.head_count_kv": 2, "llama.rope.dimension_count": width / 2, "llama.vocab_size": uint32(size),
		"tokenizer.ggml.eos_token_id": uint32(eos),
	} {
		set(key, ggufUint32, n)
	}
	set("llama.attention.layer_norm_rms_epsilon", ggufFloat32, float32(1e-5))
	for key, text := range map[string]string{"general.architecture": "llama", "general.name": "tiny", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2"} {
		set(key, ggufString, text)
	}
	texts := func(key string, list []string) {
		set(key, ggufArray, uint32(ggufString), uint64(len(list)))
		for _, s := range list {
			put(s)
		}
	}
	texts("tokenizer.ggml.tokens", tokens)
	texts("tokenizer.ggml.merges", merges)
	set("tokenizer.ggml.token_type", ggufArray, uint32(ggufInt32), uint64(len(kinds)), kinds)
	meta, b = b, bytes.Buffer{}

	b.WriteString("GGUF")
	put(uint32(3), uint64(len(tensors)), uint64(values))
	b.Write(meta.Bytes())
	offset := uint64(0)
	for _, x := range tensors {
		n := uint64(4)
		put(x.name, uint32(len(x.dims)), x.dims, uint32(0), offset)
		for _, d := range x.dims {
			n *= d
		}
		offset += (n + 31) / 32 * 32
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, x := range tensors {
		b.Write(make([]byte, -b.Len()&31))
		n := uint64(1)
		for _, d := range x.dims {
			n *= d
		}
		weights := make([]float32, n)
		for i := range weights {
			weights[i] = float32(rnd.NormFloat64() / math.Sqrt(width))
			if strings.Contains(x.name, "norm") {
				weights[i] = 1
			}
		}
		put(weights)
	}
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
}

// tinyLlama writes a small model, and returns its file and the directory of its tokenizer. It has the markers of all
// families and of templates, if there are any.
func tinyLlama(t *testing.T, templates []string) (file, dir string) {
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, mini.FS()))
	name := filepath.Join(dir, "tokenizer.json")
	size := int64(mini.Load().VocabSize())
	if len(templates) > 0 {
		tokenizer := readJSON(t, name)
		size = addMarkers(t, tokenizer, templates)
		writeJSON(t, name, tokenizer)
	}
	file = filepath.Join(dir, "tiny.gguf")
	writeGGUF(t, file, readJSON(t, name), size)
	return file, dir
}

// TestLiveLlamaCPPConstraints is like TestLiveVLLMConstraints, with a llama.cpp that gets grammars.
func TestLiveLlamaCPPConstraints(t *testing.T) {
	needsLlama(t)
	files, err := filepath.Glob(filepath.Join(os.Getenv("WEFT_TEMPLATES"), "*.jinja"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	file, dir := tinyLlama(t, files)
	l := &liveLlama{t: t, file: file, port: freePort(t), args: []string{"-c", fmt.Sprint(2 * liveWindow)}}
	l.start()
	forceFamilies(t, upstream.LlamaCPP{}, l.url(), dir, files)
}

// readGGUF returns the metadata of a GGUF file.
func readGGUF(t *testing.T, file string) map[string]any {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	in := io.Reader(f)
	get := func(v any) { require.NoError(t, binary.Read(in, binary.LittleEndian, v)) }
	text := func() string {
		var n uint64
		get(&n)
		require.Less(t, n, uint64(1<<24))
		out := make([]byte, n)
		get(out)
		return string(out)
	}
	var value func(kind uint32) any
	value = func(kind uint32) any {
		switch kind {
		case ggufString:
			return text()
		case ggufArray:
			var of uint32
			var n uint64
			get(&of)
			get(&n)
			out := make([]any, 0, n)
			for range n {
				out = append(out, value(of))
			}
			return out
		case ggufUint32, ggufInt32, ggufFloat32:
			var v uint32
			get(&v)
			return v
		case 7:
			var v uint8
			get(&v)
			return v
		}
		t.Fatalf("kind %d of a value", kind)
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, 16<<20))
	require.NoError(t, err)
	in = bytes.NewReader(data[8:])
	var tensors, values uint64
	get(&tensors)
	get(&values)
	out := make(map[string]any)
	for range values {
		key := text()
		var kind uint32
		get(&kind)
		out[key] = value(kind)
	}
	return out
}

// smolLM returns SmolLM2-135M-Instruct as the gateway loads it, from the metadata of its file.
func smolLM(t *testing.T, file string) *prompt.Model {
	meta := readGGUF(t, file)
	require.Equal(t, "smollm", meta["tokenizer.ggml.pre"])
	vocab, added := map[string]any{}, []any{}
	kinds := meta["tokenizer.ggml.token_type"].([]any)
	for i, token := range meta["tokenizer.ggml.tokens"].([]any) {
		vocab[token.(string)] = i
		if kind := kinds[i].(uint32); kind == 3 || kind == 4 {
			added = append(added, map[string]any{"id": i, "content": token, "special": kind == 3, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
		}
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	data, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": added, "normalizer": nil, "post_processor": nil, "decoder": level,
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{map[string]any{"type": "Digits", "individual_digits": true}, level}},
		"model": map[string]any{"type": "BPE", "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false,
			"vocab": vocab, "merges": meta["tokenizer.ggml.merges"]},
	})
	require.NoError(t, err)
	m, err := prompt.Load(fstest.MapFS{
		"tokenizer.json":        &fstest.MapFile{Data: data},
		"tokenizer_config.json": &fstest.MapFile{Data: []byte(`{"bos_token":"<|im_start|>","eos_token":"<|im_end|>"}`)},
		"chat_template.jinja":   &fstest.MapFile{Data: []byte(meta["tokenizer.chat_template"].(string))},
	}, &prompt.Options{Name: "smol", Window: 8192, Family: "hermes"})
	require.NoError(t, err)
	return m
}

// llamaGateway returns the address of a gateway for a llama.cpp, and its records.
func llamaGateway(t *testing.T, l *liveLlama, model *prompt.Model, change func(*serve.Options)) (string, chan serve.Record) {
	records := make(chan serve.Record, 256) // more than a test leaves unread
	o := serve.Options{
		Model: "smol", Prompts: model, Engines: []serve.Engine{{URL: l.url(), Kind: upstream.LlamaCPP{}}},
		OnDone: func(r serve.Record) { records <- r },
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	}
	if change != nil {
		change(&o)
	}
	g, err := serve.New(&o)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	return s.URL, records
}

// llamaBody returns a request with turns for an API.
func llamaBody(path string, turns []map[string]any, tokens int, more map[string]any) map[string]any {
	body := map[string]any{"model": "smol", "temperature": 0}
	switch path {
	case "/v1/responses":
		body["input"], body["max_output_tokens"] = turns, tokens
	default:
		body["messages"], body["max_tokens"] = turns, tokens
	}
	for k, v := range more {
		body[k] = v
	}
	return body
}

// postJSON sends a body and returns the status and the response.
func postJSON(t *testing.T, url string, body any) (int, string) {
	data, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(out)
}

// A liveReply has the members of the responses of all APIs that are compared.
type liveReply struct {
	Choices []struct {
		Message struct{ Content string }
		Finish  string `json:"finish_reason"`
	}
	Content []struct{ Text string }
	Output  []struct {
		Content []struct{ Text string }
	}
	StopReason   string `json:"stop_reason"`
	StopSequence string `json:"stop_sequence"`
	Status       string
	Incomplete   struct{ Reason string } `json:"incomplete_details"`
}

// readReply returns the text of a response, why it ended, and the stop sequence if the API has it.
func readReply(t *testing.T, out string) (text, why, stop string) {
	var r liveReply
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	switch {
	case len(r.Choices) > 0:
		return r.Choices[0].Message.Content, r.Choices[0].Finish, ""
	case r.StopReason != "":
		for _, c := range r.Content {
			text += c.Text
		}
		return text, r.StopReason, r.StopSequence
	}
	for _, o := range r.Output {
		for _, c := range o.Content {
			text += c.Text
		}
	}
	return text, cmp.Or(r.Incomplete.Reason, r.Status), ""
}

// TestLiveLlamaCPPChat holds conversations with a real model. Each prompt is cached up to the last response, also where the model
// has written that as other tokens than its text is encoded to. Encoded from text, as by a gateway without a memo, prompts are those
// of the engine's own chat: without randomness, the text of each response equals the one there. llama.cpp may write something
// else if less of the prompt is cached, so that a request with another text is repeated once, when the whole prompt is.
func TestLiveLlamaCPPChat(t *testing.T) {
	needsLlama(t)
	file := os.Getenv("WEFT_LIVE_SMOLLM2")
	if file == "" {
		t.Skip("needs SmolLM2 (run .ci/live)")
	}
	l := &liveLlama{t: t, file: file, port: freePort(t), args: []string{"-c", "16384", "-a", "smol"}}
	l.start()
	model := smolLM(t, file)
	e, err := upstream.Ask(t.Context(), l.url(), "")
	require.NoError(t, err)
	require.Equal(t, []any{upstream.LlamaCPP{}, 2, "smol", 8192}, []any{e.Kind, e.Slots, e.Models[0].ID, e.Models[0].Window})
	for _, text := range []string{"Hello, world! 12345  x\n\n\ty = 2", "naïve — 你好 🙂🇩🇪", "<|im_start|>"} {
		ids, err := e.Tokenize(t.Context(), "smol", text)
		require.NoError(t, err)
		require.Equal(t, ids, model.Tokenizer().AppendEncode(nil, text), text)
	}
	url, records := llamaGateway(t, l, model, nil)
	plain, plainRecords := llamaGateway(t, l, model, func(o *serve.Options) { o.MemoBytes = 1 })
	questions := []string{
		"What is the capital of France?", "And of Norway?", "Write a haiku about rain.", "Count from 1 to 10.", "Say \"naïve café\" twice.",
		"Name three colors.", "Write a Python function that adds two numbers.", "Explain it.", "Translate \"good morning\" into German.", "Use an emoji.",
		"What is 7 times 8?", "Why is the sky blue?", "List two planets.", "Is water wet?", "Tell a very short joke.", "Spell the word cat.",
		"What day comes after Monday?", "Write 你好 once.", "Give me a JSON object with a key a.", "Goodbye!",
	}
	for _, path := range livePaths {
		next, cached := 0, 0
		var turns []map[string]any
		var last serve.Record
		for i, q := range questions {
			turns = append(turns, map[string]any{"role": "user", "content": q})
			status, out := postJSON(t, url+path, llamaBody(path, turns, 48, nil))
			require.Equal(t, http.StatusOK, status, out)
			r := <-records
			text, _, _ := readReply(t, out)
			require.False(t, r.Usage.CachedEstimated)
			if i > 0 {
				// The engine has computed neither the last token of an output nor the last one of a prompt.
				if next++; r.Usage.Cached >= last.Usage.Prompt+last.Usage.Output-1 {
					cached++
				} else {
					t.Logf("%s %d: %d cached of %d after a prompt of %d and an output of %d: %q", path, i, r.Usage.Cached, r.Usage.Prompt, last.Usage.Prompt, last.Usage.Output, turns[len(turns)-2]["content"])
				}
			}
			last = r
			turns = append(turns, map[string]any{"role": "assistant", "content": text})
		}
		t.Logf("%-21s next prompt cached in %d of %d", path, cached, next)
		require.Equal(t, next, cached)

		equal, again := 0, 0
		turns = nil
		for i, q := range questions {
			turns = append(turns, map[string]any{"role": "user", "content": q})
			status, out := postJSON(t, plain+path, llamaBody(path, turns, 48, nil))
			require.Equal(t, http.StatusOK, status, out)
			<-plainRecords
			text, why, _ := readReply(t, out)
			status, out = postJSON(t, l.url()+"/v1/chat/completions", llamaBody("", turns, 48, nil))
			require.Equal(t, http.StatusOK, status, out)
			own, ownWhy, _ := readReply(t, out)
			if text != own {
				t.Logf("%s %d: %q, llama.cpp itself %q", path, i, text, own)
				again++
				status, out = postJSON(t, plain+path, llamaBody(path, turns, 48, nil))
				require.Equal(t, http.StatusOK, status, out)
				<-plainRecords
				text, why, _ = readReply(t, out)
			}
			if text == own {
				equal++
			}
			require.Equal(t, map[string]string{"stop": "stop", "length": "length"}[ownWhy], map[string]string{
				"stop": "stop", "length": "length", "end_turn": "stop", "max_tokens": "length", "completed": "stop", "max_output_tokens": "length",
			}[why], "%s %d: %s", path, i, why)
			turns = append(turns, map[string]any{"role": "assistant", "content": text})
		}
		t.Logf("%-21s text equal in %d of %d, %d of them when asked again", path, equal, len(questions), again)
		require.Equal(t, len(questions), equal)
		require.LessOrEqual(t, again, 2)

		// Stop sequences, and where they are reported.
		whole := turns[5]["content"].(string)
		word := whole[len(whole)/2:]
		if i := strings.IndexByte(word, ' '); i >= 0 {
			word = word[i:]
		}
		word = word[:min(len(word), 6)]
		field := map[string]string{"/v1/chat/completions": "stop", "/v1/messages": "stop_sequences"}[path]
		if field == "" {
			continue // Responses has no stop sequences
		}
		stopped := 0
		for i := range 4 { // which token is the best one may change with the part of the prompt that is cached
			stream := i%2 == 0
			status, out := postJSON(t, url+path, llamaBody(path, turns[:5], 48, map[string]any{field: []string{word, "\x01"}, "stream": stream}))
			require.Equal(t, http.StatusOK, status, out)
			r := <-records
			if r.Finish == event.StopSequence.String() {
				stopped++
			}
			if stream {
				require.NotContains(t, out, `"error"`)
				continue
			}
			text, why, stop := readReply(t, out)
			require.NotContains(t, text, word)
			switch {
			case r.Finish != event.StopSequence.String():
			case field == "stop":
				require.Equal(t, "stop", why)
			default:
				require.Equal(t, []string{"stop_sequence", word}, []string{why, stop})
			}
		}
		t.Logf("%-21s stop sequence found in %d of 4", path, stopped)
		require.Positive(t, stopped)
	}
}

// TestLiveLlamaCPPLogprobs checks that the entries of a response's log probabilities are its text, and that the best token of each is
// the one that was written without randomness.
func TestLiveLlamaCPPLogprobs(t *testing.T) {
	needsLlama(t)
	file := os.Getenv("WEFT_LIVE_SMOLLM2")
	if file == "" {
		t.Skip("needs SmolLM2 (run .ci/live)")
	}
	l := &liveLlama{t: t, file: file, port: freePort(t), args: []string{"-c", "4096"}}
	l.start()
	url, records := llamaGateway(t, l, smolLM(t, file), nil)
	tokens, best := 0, 0
	for _, question := range []string{"What is the capital of France?", "Write 你好 and 🙂🇩🇪 once.", "Count from 1 to 10."} {
		status, out := postJSON(t, url+"/v1/chat/completions", llamaBody("", []map[string]any{{"role": "user", "content": question}}, 48, map[string]any{"logprobs": true, "top_logprobs": 2}))
		require.Equal(t, http.StatusOK, status, out)
		<-records
		var reply struct {
			Choices []struct {
				Message  struct{ Content string }
				Logprobs struct {
					Content []struct {
						Token   string
						Logprob float64
						Bytes   []int
						Top     []struct{ Logprob float64 } `json:"top_logprobs"`
					}
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(out), &reply))
		var text []byte
		for _, p := range reply.Choices[0].Logprobs.Content {
			for _, b := range p.Bytes {
				text = append(text, byte(b))
			}
			require.Len(t, p.Top, 2)
			require.LessOrEqual(t, p.Logprob, 0.0)
			if tokens++; p.Logprob == p.Top[0].Logprob {
				best++
			}
		}
		require.Equal(t, reply.Choices[0].Message.Content, string(text))
	}
	t.Logf("%d tokens with log probabilities, %d of them the best ones", tokens, best)
	require.Equal(t, tokens, best)
	require.Greater(t, tokens, 30)
}

// TestLiveLlamaCPPFailures prints what clients see when an engine fails.
func TestLiveLlamaCPPFailures(t *testing.T) {
	needsLlama(t)
	file, dir := tinyLlama(t, nil)
	model, err := prompt.Load(os.DirFS(dir), &prompt.Options{Name: "smol", Window: 30000, Family: "hermes"})
	require.NoError(t, err)
	const silence = 2 * time.Second
	quick := func(o *serve.Options) {
		o.EngineSilence, o.HealthInterval = silence, 200*time.Millisecond
		o.Logger = nil
	}
	question := []map[string]any{{"role": "user", "content": "x"}}
	var table []string
	type failure struct {
		name string
		args []string
		turn string
		key  string
		do   func(l *liveLlama) // while the engine writes
		want []string           // one of them is in every response
	}
	for _, f := range []failure{
		{"killed", []string{"-c", "65536"}, "x", "", (*liveLlama).kill, []string{"engine failed"}},
		{"stopped", []string{"-c", "65536"}, "x", "", func(l *liveLlama) { l.cmd.Process.Signal(syscall.SIGSTOP) }, []string{"Timeout: the engine took too long"}},
		{"wrong key", []string{"-c", "65536", "--api-key", "right"}, "x", "wrong", nil, []string{"does not accept the key"}},
		{"over the window", []string{"-c", "2048"}, strings.Repeat("long ", 3000), "", nil, []string{"maximum context length is 1024", "> 1024 maximum", "exceeds the context window"}},
	} {
		for _, path := range livePaths {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%s%s %t", f.name, path, stream)
				t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
					l := &liveLlama{t: t, file: file, port: freePort(t), args: f.args}
					l.start()
					url, records := llamaGateway(t, l, model, func(o *serve.Options) {
						quick(o)
						o.Engines[0].APIKey = f.key
						o.Engines[0].Check = func(ctx context.Context) error {
							e, err := upstream.Ask(ctx, l.url(), f.key)
							if err == nil && f.name == "killed" && e.Models[0].Window != 32768 {
								err = fmt.Errorf("%w: a window of %d tokens, not 32768", serve.ErrContradiction, e.Models[0].Window)
							}
							return err
						}
					})
					if f.do != nil {
						go func() {
							time.Sleep(700 * time.Millisecond)
							f.do(l)
						}()
					}
					more := map[string]any{"stream": stream, "temperature": 1}
					if f.do != nil {
						bias := map[string]any{} // no token ends the output
						for _, a := range model.Tokenizer().AddedTokens() {
							bias[fmt.Sprint(a.ID)] = -100
						}
						more["logit_bias"] = bias
					}
					begun := time.Now()
					status, out := postJSON(t, url+path, llamaBody(path, []map[string]any{{"role": "user", "content": f.turn}}, 20000, more))
					took := time.Since(begun)
					r := <-records
					if !slices.ContainsFunc(f.want, func(s string) bool { return strings.Contains(out, s) }) {
						t.Errorf("HTTP %d, …%s", status, out[max(0, len(out)-500):])
					}
					require.Less(t, took, silence+5*time.Second)
					if f.do != nil {
						require.Positive(t, r.Usage.Output, "tokens that were written count")
					}
					if f.do != nil && stream && path == "/v1/responses" {
						require.NotContains(t, out, `"output_tokens":0`)
					}
					require.False(t, path == "/v1/responses" && strings.Contains(out, `"param":"messages"`))
					last := out[max(0, len(out)-160):]
					table = append(table, fmt.Sprintf("%-16s %-21s stream=%-5t HTTP %d after %.1f s, finish %s, output %d: …%s", f.name, path, stream, status, took.Seconds(), r.Finish, r.Usage.Output,
						strings.ReplaceAll(last, "\n", " ")))
					if f.name != "killed" {
						return
					}
					if path == livePaths[0] && !stream { // another engine at the same address, and then the same one
						l.args = []string{"-c", "4096"}
						l.start()
						status, out := postJSON(t, url+path, llamaBody(path, question, 5, nil))
						require.NotEqual(t, http.StatusOK, status)
						table = append(table, fmt.Sprintf("%-16s %-21s stream=%-5t HTTP %d: %s", "other window", path, stream, status, out))
						resp, err := http.Get(url + "/ready")
						require.NoError(t, err)
						ready, err := io.ReadAll(resp.Body)
						require.NoError(t, err)
						resp.Body.Close()
						require.Contains(t, string(ready), "a window of 2048 tokens, not 32768")
						table = append(table, fmt.Sprintf("%-16s /ready HTTP %d: %s", "other window", resp.StatusCode, strings.ReplaceAll(string(ready), "\n", " ")))
						l.kill()
						l.args = f.args
					}
					l.start() // again, at the same address
					for until := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
						status, out := postJSON(t, url+path, llamaBody(path, question, 5, nil))
						if status == http.StatusOK {
							break
						}
						require.True(t, time.Now().Before(until), out)
					}
				})
			}
		}
	}
	for _, row := range table {
		t.Log(row)
	}
}
