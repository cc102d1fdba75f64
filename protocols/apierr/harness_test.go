// SPDX-License-Identifier: Apache-2.0

package apierr_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
)

// A harness recognizes a prompt that is too long by patterns in the text of an error.
type harness struct {
	name     string
	patterns []string // any of them suffices; those that match only other servers' errors are left out
	never    []string // patterns of other errors, which take precedence
	tells    string   // pattern whose groups are the token counts that it uses
}

var (
	// Claude Code 2.1.168 to 2.1.288.
	claudeCode = harness{"Claude Code", []string{`prompt is too long`, `input is too long for requested model`}, nil, `(?i)prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)`}
	// pi-mono packages/ai/src/utils/overflow.ts, 83378aad (2026-03).
	pi = harness{"pi", []string{`prompt is too long`, `exceeds the context window`, `reduce the length of the messages`, `maximum context length is \d+ tokens`, `context[_ ]length[_ ]exceeded`, `too many tokens`, `token limit exceeded`}, nil, ""}
	// opencode packages/opencode/src/provider/error.ts (2026); also by the code in the body, and by status 413.
	opencode = harness{"opencode", []string{`prompt is too long`, `exceeds the context window`, `reduce the length of the messages`, `maximum context length is \d+ tokens`, `context[_ ]length[_ ]exceeded`, `input length.*exceeds.*context length`}, nil, ""}
	// OpenClaw src/agents/pi-embedded-helpers/errors.ts (2026): patterns for rate limits and for models that require
	// reasoning are checked first.
	openClaw = harness{"OpenClaw", []string{`context length exceeded`, `maximum context length`, `prompt is too long`, `exceed context limit`, `input length.*exceed.*context`},
		[]string{`\btpm\b`, `tokens per minute`, `reasoning is (mandatory|required)`, `requires reasoning`, `rate limit`, `too many requests`}, `(?i)(?:resulted in\s+|requested\s+|prompt is too long:\s*)([\d,]+)\s+tokens`}
)

func (h *harness) knows(text string) bool {
	matches := func(p string) bool { return regexp.MustCompile("(?i)" + p).MatchString(text) }
	for _, p := range h.never {
		if matches(p) {
			return false
		}
	}
	for _, p := range h.patterns {
		if matches(p) {
			return true
		}
	}
	return false
}

// TestHarnessesRecognizeContextLength passes to each harness the text it builds from our errors, for each API that it uses.
func TestHarnessesRecognizeContextLength(t *testing.T) {
	type text func(e *apierr.Error) string
	status := func(s apierr.Style) text { // SDKs that append the body to the status
		return func(e *apierr.Error) string { return "400 " + string(e.AppendBody(nil, s, "req_1")) }
	}
	message := func(s apierr.Style) text { // SDKs that extract the message
		return func(e *apierr.Error) string {
			var body struct{ Error struct{ Message string } }
			require.NoError(t, json.Unmarshal(e.AppendBody(nil, s, ""), &body))
			return "400 " + body.Error.Message
		}
	}
	failed := func(e *apierr.Error) string { // the event response.failed
		var body struct{ Code, Message string }
		require.NoError(t, json.Unmarshal(e.AppendResponseError(nil), &body))
		return body.Code + ": " + body.Message
	}
	long, output := apierr.ContextLength(210000, 0, 200000), apierr.ContextLength(190000, 16000, 200000)
	for _, c := range []struct {
		h      harness
		api    string
		text   text
		output bool // it also recognizes that prompt and output together are too long
	}{
		{claudeCode, "messages", status(apierr.Anthropic), false}, // it recognizes that by another pattern, see below
		{pi, "messages", status(apierr.Anthropic), false},
		{pi, "chat and responses", message(apierr.OpenAI), true},
		{pi, "response.failed", failed, true},
		{opencode, "messages", message(apierr.Anthropic), false},
		{opencode, "chat and responses", message(apierr.OpenAI), true},
		{openClaw, "messages", status(apierr.Anthropic), true},
		{openClaw, "chat and responses", message(apierr.OpenAI), true},
		{openClaw, "response.failed", failed, true},
	} {
		require.True(t, c.h.knows(c.text(long)), "%s on %s: %s", c.h.name, c.api, c.text(long))
		require.Equal(t, c.output, c.h.knows(c.text(output)), "%s on %s: %s", c.h.name, c.api, c.text(output))
		require.False(t, c.h.knows(c.text(apierr.ModelNotFound("m"))), c.h.name)
		require.False(t, c.h.knows(c.text(apierr.Overloaded(0))), c.h.name)
		if c.h.tells != "" {
			numbers := regexp.MustCompile(c.h.tells).FindStringSubmatch(c.text(long))
			require.NotEmpty(t, numbers, c.h.name)
			require.Equal(t, "210000 200000"[:7*(len(numbers)-1)-1], strings.Join(numbers[1:], " "), c.h.name)
		}
	}
	// Claude Code retries with the number of output tokens that fit.
	require.Equal(t, []string{"190000", "16000", "200000"},
		regexp.MustCompile("input length and `max_tokens` exceed context limit: (\\d+) \\+ (\\d+) > (\\d+)").FindStringSubmatch(output.Text(apierr.Anthropic))[1:])
	// Codex: codex-api/src/sse/responses.rs reads only the code.
	require.Equal(t, "context_length_exceeded", long.ResponseCode())
	// opencode also reads the code of an HTTP error.
	require.Contains(t, string(long.AppendBody(nil, apierr.OpenAI, "")), `"code":"context_length_exceeded"`)
}
