// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/tokenizers/mini"
)

// sdksSaw is the output of testdata/sdks.py and sdks.mjs.
const sdksSaw = `["chat","Looking.","weather",{"city":"Oslo"},"tool_calls"]
["chat result","It is sunny."]
["chat error",400,"messages"]
["responses","Looking.","weather",{"city":"Oslo"},"completed"]
["responses result","It is sunny."]
["retrieve","It is sunny."]
["input items",["message","reasoning","message","function_call","function_call_output"]]
["deleted",404]
["warm-up",[]]
["socket","It is sunny."]
["socket error","previous_response_not_found"]
["messages","Looking.","weather",{"city":"Oslo"},"tool_use"]
["messages result","It is sunny."]
["messages","Looking.","weather",{"city":"Oslo"},"tool_use"]
["messages result","It is sunny."]
["count",true]
["messages error",400,"invalid_request_error"]
["models",["m"],["m"]]
`

// TestLiveSDKs checks what the SDKs for Python and TypeScript make of conversations with a played model over all APIs.
// WEFT_LIVE_SDKS is a directory with a virtual environment and packages of npm; .ci/live installs them.
func TestLiveSDKs(t *testing.T) {
	packages := os.Getenv("WEFT_LIVE_SDKS")
	if packages == "" {
		t.Skip("set WEFT_LIVE_SDKS, or run .ci/live sdks")
	}
	e := vllm.New(mini.Load(), &vllm.Options{Model: "m", Speed: math.Inf(1), Logger: slog.New(slog.DiscardHandler), Script: func(p vllm.Prompt) vllm.Reply {
		if strings.Contains(p.Text, "<tool_response>\nsunny") {
			return vllm.Reply{Text: "It is sunny."}
		}
		return vllm.Reply{Text: "<think>\nI need a tool.\n</think>\n\nLooking.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"}
	}})
	engine, stop, err := listen("127.0.0.1:0", e)
	require.NoError(t, err)
	defer func() { e.Close(); stop() }()
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0", "-engine", engine, "-store-mb", "8"}, io.Discard, &log, func(a string) { addr <- a })
	}()
	url := "http://" + <-addr
	for _, tt := range []struct{ name, program, script, args string }{
		{"Python", filepath.Join(packages, "sdks", "bin", "python"), "sdks.py", ""},
		{"TypeScript", "node", "sdks.mjs", filepath.Join(packages, "sdks-npm")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), tt.program, filepath.Join("testdata", tt.script), tt.args)
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=x", "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=x")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			require.NoError(t, err, "%s\n%s", out, errs.String())
			seen := strings.ReplaceAll(strings.ReplaceAll(string(out), ", ", ","), ": ", ":") // of Python
			if diff := cmp.Diff(sdksSaw, seen); diff != "" {
				t.Error(diff)
			}
		})
	}
	cancel()
	require.NoError(t, <-ended)
}
