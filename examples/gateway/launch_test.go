// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/tokenizers/mini"
)

// fakeHarness is set in the environment of the test's own program when it plays a harness.
const fakeHarness = "WEFT_TEST_HARNESS"

// playHarness asks the gateway with what launch configured, and prints the answer, the arguments and variables.
func playHarness() int {
	base, key := os.Getenv("ANTHROPIC_BASE_URL"), os.Getenv("ANTHROPIC_AUTH_TOKEN")
	if os.Args[len(os.Args)-1] == "wait" {
		fmt.Println("waiting")
		time.Sleep(time.Minute)
	}
	for _, k := range []string{key, "wrong"} {
		req, err := http.NewRequest(http.MethodPost, base+"/v1/messages", strings.NewReader(`{"model":"claude-haiku-4-5-20251001","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+k)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		body, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.StatusCode, string(body))
	}
	fmt.Printf("%q %q\n", os.Args[1:], []string{os.Getenv("ANTHROPIC_MODEL"), os.Getenv("ANTHROPIC_API_KEY")})
	return 7
}

// putHarness puts a program with the name of a harness first in PATH.
func putHarness(t *testing.T, name string) {
	if runtime.GOOS == "windows" {
		t.Skip("needs links")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(fakeHarness, "1")
}

// TestLaunch checks that a harness gets the gateway's address, a key that others do not have, and its own arguments, that
// it may ask for any model, and that the gateway ends with its status.
func TestLaunch(t *testing.T) {
	putHarness(t, "claude")
	t.Setenv("ANTHROPIC_API_KEY", "sk-user")
	var out, log bytes.Buffer
	err := run(t.Context(), []string{"-listen", "0.0.0.0:1", "-model", "m", "-engine", "embedded=local", "launch", "claude", "--", "-p", "say hi"}, &out, &log, nil)
	status, ok := harnessStatus(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, 7, status)
	lines := strings.Split(out.String(), "\n")
	require.Regexp(t, `^200 .*"model":"claude-haiku-4-5-20251001".*hello`, lines[0])
	require.Regexp(t, `^401 .*authentication_error`, lines[1], "others on the machine cannot use it")
	require.Equal(t, `["-p" "say hi"] ["m" ""]`, lines[2])
	require.Contains(t, log.String(), "gateway listening")
	require.NotContains(t, log.String(), "request done", "the terminal belongs to the harness")

	_, ok = harnessStatus(run(t.Context(), []string{"-model", "m", "-strict-models", "-engine", "embedded=local", "launch", "claude"}, &out, io.Discard, nil))
	require.True(t, ok)
	require.Contains(t, out.String(), `404 {"type":"error","error":{"type":"not_found_error"`)

	file := filepath.Join(t.TempDir(), "log")
	run(t.Context(), []string{"-model", "m", "-log-file", file, "-engine", "embedded=local", "launch", "claude"}, io.Discard, io.Discard, nil)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "request done")
}

// TestLaunchSignals checks that SIGTERM reaches the harness, and that an interrupt is its own affair.
func TestLaunchSignals(t *testing.T) {
	putHarness(t, "claude")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	r, w := io.Pipe()
	go func() {
		ended <- run(ctx, []string{"-model", "m", "-engine", "embedded=local", "launch", "claude", "wait"}, w, io.Discard, nil)
		w.Close()
	}()
	line := make([]byte, 8)
	_, err := io.ReadFull(r, line)
	require.NoError(t, err)
	go io.Copy(io.Discard, r)
	cancel() // as an interrupt does in main
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(os.Interrupt))
	select {
	case err := <-ended:
		t.Fatal("the gateway ended before the harness: ", err)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, self.Signal(syscall.SIGTERM))
	status, ok := harnessStatus(<-ended)
	require.True(t, ok)
	require.Equal(t, 128+15, status)
}

func TestLaunchErrors(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for args, has := range map[string]string{
		"launch":                    "launch what? Name one of claude, codex",
		"launch cluade":             "did you mean claude?",
		"launch command":            "launch command needs a program",
		"launch claude":             "Install Claude Code first: npm install -g @anthropic-ai/claude-code",
		"launch command -- nowhere": `exec: "nowhere": executable file not found`,
		"lunch claude":              `unexpected argument "lunch"`,
		"-log-file / launch claude": "open /: ",
		"-check launch claude":      "the check starts no harness",
	} {
		err := run(t.Context(), append([]string{"-model", "m", "-engine", "embedded=local"}, strings.Fields(args)...), io.Discard, io.Discard, nil)
		require.ErrorContains(t, err, has)
	}
}

// TestClients checks what is printed for the user's shell.
func TestClients(t *testing.T) {
	var out bytes.Buffer
	g := newEndpoint(&config{Deployment: Deployment{Model: "org/it's", MaxModelLen: 40960}, KeysFile: "keys"}, "[::]:80", true)
	printClients(&out, g)
	require.Contains(t, out.String(), "Serving org/it's at https://127.0.0.1:80. ")
	require.Contains(t, out.String(), `Claude Code  ANTHROPIC_BASE_URL=https://127.0.0.1:80 ANTHROPIC_AUTH_TOKEN=KEY ANTHROPIC_MODEL='org/it'\''s' `)
	require.Contains(t, out.String(), `WEFT_KEY=KEY codex -c 'model="org/it'\''s"' -c 'model_provider="weft"' -c 'model_providers.weft={name="weft",base_url="https://127.0.0.1:80/v1",`)
	require.Contains(t, out.String(), " -c model_context_window=40960\n")
	var config struct{ Provider map[string]any }
	for line := range strings.Lines(out.String()) {
		if _, value, ok := strings.Cut(line, "OPENCODE_CONFIG_CONTENT='"); ok {
			value, _, _ = strings.Cut(value, "' opencode")
			require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(value, `'\''`, "'")), &config))
		}
	}
	require.Contains(t, config.Provider, "weft")
}

// A liveRun is the result of a harness.
type liveRun struct {
	version  string
	dir      string // in which it worked
	out, log string // of the harness and of the gateway
	requests []string
	took     time.Duration
}

// runLive starts a real harness with launch on a played model, and requires that it ends well. WEFT_LIVE_CLIENTS is the
// directory with the packages of npm; .ci/live installs them.
func runLive(t *testing.T, harness, pkg string, args ...string) (r liveRun) {
	t.Helper()
	return runLiveOn(t, &stage{}, harness, pkg, args...)
}

// A stage configures the gateway and the engine of a harness.
type stage struct {
	flags  func(engine string) []string                           // of the gateway, for the address of the engine; nil means -engine
	speed  float64                                                // of the engine; 0 means no delay
	script func(gateway *os.Process, reply vllm.Reply) vllm.Reply // is called with each reply; may be nil
}

// runLiveOn is runLive on a stage.
func runLiveOn(t *testing.T, on *stage, harness, pkg string, args ...string) (r liveRun) {
	t.Helper()
	packages := os.Getenv("WEFT_LIVE_CLIENTS")
	if packages == "" {
		t.Skip("set WEFT_LIVE_CLIENTS, or run .ci/live clients")
	}
	meta, err := os.ReadFile(filepath.Join(packages, "node_modules", filepath.FromSlash(pkg), "package.json"))
	if err != nil {
		t.Skip(err)
	}
	var version struct{ Version string }
	require.NoError(t, json.Unmarshal(meta, &version))
	home, work := t.TempDir(), t.TempDir()
	var cmd *exec.Cmd
	script := func(p vllm.Prompt) vllm.Reply {
		reply := play(p)
		if on.script != nil {
			reply = on.script(cmd.Process, reply)
		}
		return reply
	}
	e := vllm.New(mini.Load(), &vllm.Options{Model: "played", Speed: cmp.Or(on.speed, math.Inf(1)), Script: script, Logger: slog.New(slog.DiscardHandler)})
	url, stop, err := listen("127.0.0.1:0", e)
	require.NoError(t, err)
	defer func() { e.Close(); stop() }()
	flags := []string{"-engine", url}
	if on.flags != nil {
		flags = on.flags(url)
	}

	program := filepath.Join(t.TempDir(), "gateway")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	log := filepath.Join(home, "gateway.log")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd = exec.CommandContext(ctx, program, slices.Concat(flags, []string{"-log-file", log, "launch", harness, "--"}, args)...)
	cmd.Dir, cmd.WaitDelay = work, 5*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + t.TempDir(), "PATH=" + filepath.Join(packages, "bin") + ":" + filepath.Join(packages, "node_modules", ".bin") + ":" + os.Getenv("PATH"),
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "PI_OFFLINE=1", "PI_TELEMETRY=0", "QWEN_TELEMETRY_ENABLED=0", "ANTHROPIC_CUSTOM_HEADERS=" + os.Getenv("ANTHROPIC_CUSTOM_HEADERS")}
	begun := time.Now()
	out, err = cmd.CombinedOutput()
	r = liveRun{version: version.Version, dir: work, out: string(out), took: time.Since(begun)}
	text, logErr := os.ReadFile(log)
	require.NoError(t, logErr)
	r.log = string(text)
	for line := range strings.Lines(r.log) {
		if strings.Contains(line, "request done") {
			r.requests = append(r.requests, line)
		}
	}
	require.NoError(t, err, "%s\n%s", r.out, r.log)
	require.NotContains(t, r.log, "request refused")
	t.Logf("%s %s: %d requests, %.1f s", pkg, r.version, len(r.requests), r.took.Seconds())
	return r
}

// file returns a file that the harness wrote.
func (r *liveRun) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(t, err, "%s\n%s", r.out, r.log)
	return string(text)
}

// codexExec are the arguments of Codex before a task.
var codexExec = []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"}

// TestLiveClients has real harnesses create a file and read it back.
func TestLiveClients(t *testing.T) {
	for _, c := range []struct {
		name, pkg string
		args      []string // before the task
		more      []string
	}{
		{"claude", "@anthropic-ai/claude-code", []string{"-p"}, []string{"--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Write,Read,Edit"}},
		{"claude 2026-10-21", "@anthropic-ai/claude-code", []string{"-p"}, []string{"--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Write,Read,Edit"}},
		{"codex", "@openai/codex", codexExec, nil},
		{"codex without WebSocket", "@openai/codex", append([]string{"-c", "model_providers.weft.supports_websockets=false"}, codexExec...), nil},
		{"opencode", "opencode-ai", []string{"run", "--pure", "--auto", "--format", "json"}, nil},
		{"openclaw", "openclaw", []string{"agent", "exec", "--cwd", ".", "--json"}, nil},
		{"pi", "@mariozechner/pi-coding-agent", []string{"-p", "--mode", "json", "--no-session"}, nil},
		{"qwen", "@qwen-code/qwen-code", []string{"--yolo", "--output-format", "stream-json"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness, version, _ := strings.Cut(c.name, " ")
			if harness == "claude" && version != "" {
				t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-version: "+version) // by itself, it sends 2023-06-01
			}
			r := runLive(t, harness, c.pkg, slices.Concat(c.args, []string{"Create a file note.txt with content weft-" + harness + ", then read it back."}, c.more)...)
			require.Equal(t, "weft-"+harness+"\n", r.file(t, "note.txt"))
			require.Contains(t, r.out, "done: note.txt has weft-"+harness)
			socket := c.name == "codex"
			require.Equal(t, socket, strings.Contains(r.log, "connection upgraded"), "%s", r.log)
			for _, line := range r.requests {
				require.Equal(t, socket, strings.Contains(line, "continued=true"), "the first one continues a warm-up: %s", line)
			}
		})
	}
}

// TestLiveReload reloads the gateway during each response to Codex.
func TestLiveReload(t *testing.T) {
	for _, socket := range []string{"true", "false"} {
		t.Run("WebSocket "+socket, func(t *testing.T) {
			during := &stage{speed: 4, script: func(gateway *os.Process, reply vllm.Reply) vllm.Reply {
				time.AfterFunc(time.Second, func() { gateway.Signal(syscall.SIGHUP) })
				reply.Text = strings.Replace(reply.Text, "<think>\n", "<think>\n"+strings.Repeat("Slowly, ", 100), 1) // for seconds
				return reply
			}}
			r := runLiveOn(t, during, "codex", "@openai/codex", slices.Concat([]string{"-c", "model_providers.weft.supports_websockets=" + socket}, codexExec,
				[]string{"Create a file note.txt with content weft-codex, then read it back."})...)
			require.Equal(t, "weft-codex\n", r.file(t, "note.txt"))
			require.Contains(t, r.out, "done: note.txt has weft-codex")
			require.Equal(t, slices.Repeat([]string{"configuration reloaded", "request done"}, 3), regexp.MustCompile("configuration reloaded|request done").FindAllString(r.log, -1))
		})
	}
}

// TestLiveClientsManaged has them do the same through another gateway, which is a managed endpoint with each API.
func TestLiveClientsManaged(t *testing.T) {
	for _, c := range []struct {
		harness, pkg string
		args         []string
	}{
		{"claude", "@anthropic-ai/claude-code", []string{"--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Write,Read,Edit", "-p"}},
		{"codex", "@openai/codex", codexExec},
		{"opencode", "opencode-ai", []string{"run", "--pure", "--auto", "--format", "json"}},
	} {
		for _, kind := range managedKinds() {
			t.Run(c.harness+" on "+kind, func(t *testing.T) {
				r := runLiveOn(t, &stage{flags: func(engine string) []string {
					back, _, _ := startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-engine", engine)
					return []string{"-model", "played", "-engine", kind + "=http://" + back}
				}}, c.harness, c.pkg, slices.Concat(c.args, []string{"Create a file note.txt with content weft-" + c.harness + ", then read it back."})...)
				require.Equal(t, "weft-"+c.harness+"\n", r.file(t, "note.txt"))
				require.Contains(t, r.out, "done: note.txt has weft-"+c.harness)
			})
		}
	}
}

// TestLiveCodexTools has Codex find a tool of a server by a search, call it in its namespace, and call its own tool of free
// text, which it has for models that it knows.
func TestLiveCodexTools(t *testing.T) {
	server, err := filepath.Abs(filepath.Join("testdata", "notes.mjs"))
	require.NoError(t, err)
	for _, socket := range []string{"true", "false"} {
		t.Run("WebSocket "+socket, func(t *testing.T) {
			notes := filepath.Join(t.TempDir(), "notes")
			r := runLive(t, "codex", "@openai/codex", slices.Concat([]string{"-c", `model="gpt-5.5"`, "-c", "model_providers.weft.supports_websockets=" + socket,
				"-c", fmt.Sprintf("mcp_servers.notes={command=\"node\",args=[%s,%s]}", quote(server), quote(notes))}, codexExec, []string{"Take a note about beta: weft-note"})...)
			text, err := os.ReadFile(notes)
			require.NoError(t, err, "%s\n%s", r.out, r.log)
			require.Equal(t, "note_beta weft-note\n", string(text))
			require.Equal(t, "weft-note\n", r.file(t, "patched.txt"))
			require.Contains(t, r.out, "done: ")
			require.Len(t, r.requests, 4)
		})
	}
}
