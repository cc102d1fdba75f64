// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
	"runtime"
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

// TestLiveClients starts real harnesses with launch, and has each create a file and read it back. WEFT_LIVE_CLIENTS is the
// directory with the packages of npm; .ci/live installs them.
func TestLiveClients(t *testing.T) {
	packages := os.Getenv("WEFT_LIVE_CLIENTS")
	if packages == "" {
		t.Skip("set WEFT_LIVE_CLIENTS, or run .ci/live clients")
	}
	quiet := map[string]string{
		"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_SHARE": "1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "QWEN_TELEMETRY_ENABLED": "0",
	}
	const ask = "Create a file note.txt with content weft-%s, then read it back."
	for _, c := range []struct {
		name, pkg string
		args      []string
	}{
		{"claude", "@anthropic-ai/claude-code", []string{"-p", ask, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Write,Read,Edit"}},
		{"codex", "@openai/codex", []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", ask}},
		{"codex without WebSocket", "@openai/codex", []string{"-c", "model_providers.weft.supports_websockets=false",
			"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", ask}},
		{"opencode", "opencode-ai", []string{"run", "--pure", "--auto", "--format", "json", ask}},
		{"pi", "@mariozechner/pi-coding-agent", []string{"-p", "--mode", "json", "--no-session", ask}},
		{"qwen", "@qwen-code/qwen-code", []string{"--yolo", "--output-format", "stream-json", ask}},
	} {
		t.Run(c.name, func(t *testing.T) {
			meta, err := os.ReadFile(filepath.Join(packages, "node_modules", filepath.FromSlash(c.pkg), "package.json"))
			if err != nil {
				t.Skip(err)
			}
			var version struct{ Version string }
			require.NoError(t, json.Unmarshal(meta, &version))
			harness, _, _ := strings.Cut(c.name, " ")
			home, work := t.TempDir(), t.TempDir()
			var requests []string
			e := vllm.New(mini.Load(), &vllm.Options{Model: "played", Speed: math.Inf(1), Script: play, Logger: slog.New(slog.DiscardHandler)})
			url, stop, err := listen("127.0.0.1:0", e)
			require.NoError(t, err)
			defer func() { e.Close(); stop() }()

			program := filepath.Join(t.TempDir(), "gateway")
			out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
			require.NoError(t, err, "%s", out)
			log := filepath.Join(home, "gateway.log")
			args := []string{"-engine", url, "-log-file", log, "launch", harness, "--"}
			for _, a := range c.args {
				if a == ask {
					a = fmt.Sprintf(ask, harness)
				}
				args = append(args, a)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Dir, cmd.WaitDelay = work, 5*time.Second
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.Env = []string{"HOME=" + home, "TMPDIR=" + t.TempDir(), "PATH=" + filepath.Join(packages, "bin") + ":" + filepath.Join(packages, "node_modules", ".bin") + ":" + os.Getenv("PATH")}
			for name, value := range quiet {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			begun := time.Now()
			out, err = cmd.CombinedOutput()
			took := time.Since(begun)
			text, logErr := os.ReadFile(log)
			require.NoError(t, logErr)
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "request done") {
					requests = append(requests, line)
				}
			}
			require.NoError(t, err, "%s\n%s", out, text)
			note, err := os.ReadFile(filepath.Join(work, "note.txt"))
			require.NoError(t, err, "%s\n%s", out, text)
			require.Equal(t, "weft-"+harness+"\n", string(note))
			require.Contains(t, string(out), "done: note.txt has weft-"+harness)
			require.NotContains(t, string(text), "request refused")
			socket := c.name == "codex"
			require.Equal(t, socket, strings.Contains(string(text), "connection upgraded"), "%s", text)
			for _, line := range requests {
				require.Equal(t, socket, strings.Contains(line, "continued=true"), "the first one continues a warm-up: %s", line)
			}
			t.Logf("%s %s: %d requests, %.1f s", c.pkg, version.Version, len(requests), took.Seconds())
		})
	}
}
