// SPDX-License-Identifier: Apache-2.0

package intent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/protocols/intent"
)

func TestFromHeaders(t *testing.T) {
	tests := []struct {
		name string
		head map[string]string
		want intent.Intent
	}{
		{"nothing", nil, intent.Intent{}},
		{
			"claude code",
			map[string]string{"X-Claude-Code-Session-Id": "s1"},
			intent.Intent{Session: intent.Session{ID: "s1", Harness: "claude-code"}},
		},
		{
			"claude code sub-agent",
			map[string]string{"X-Claude-Code-Session-Id": "s1", "x-claude-code-agent-id": "a2"},
			intent.Intent{Session: intent.Session{ID: "s1/a2", Parent: "s1", Harness: "claude-code"}},
		},
		{
			"claude code sub-agent of a sub-agent",
			map[string]string{
				"X-Claude-Code-Session-Id": "s1", "x-claude-code-agent-id": "a3", "x-claude-code-parent-agent-id": "a2",
			},
			intent.Intent{Session: intent.Session{ID: "s1/a3", Parent: "s1/a2", Harness: "claude-code"}},
		},
		{
			"codex root thread",
			map[string]string{"originator": "codex_exec", "session-id": "s", "thread-id": "s"},
			intent.Intent{Session: intent.Session{ID: "s", Harness: "codex"}},
		},
		{
			"codex sub-agent",
			map[string]string{"originator": "codex_exec", "session-id": "s", "thread-id": "t"},
			intent.Intent{Session: intent.Session{ID: "t", Parent: "s", Harness: "codex"}},
		},
		{"thread-id of somebody else", map[string]string{"thread-id": "t"}, intent.Intent{}},
		{
			"opencode",
			map[string]string{"x-session-id": "ses_1", "x-session-affinity": "ses_1"},
			intent.Intent{Session: intent.Session{ID: "ses_1", Harness: "opencode"}},
		},
		{"pi", map[string]string{"session_id": "p"}, intent.Intent{Session: intent.Session{ID: "p", Harness: "pi"}}},
		{
			"dynamo before all others",
			map[string]string{
				"x-dynamo-session-id": "d", "x-dynamo-parent-session-id": "d", "x-dynamo-session-final": "true",
				"x-session-id": "o", "x-dynamo-request-priority": "-3", "x-tenant-id": "acme",
			},
			intent.Intent{
				Priority: -3, Salt: "acme", Session: intent.Session{ID: "d", Final: true, Harness: "dynamo"},
			},
		},
		{
			"malformed",
			map[string]string{"x-dynamo-request-priority": "soon", "x-session-id": strings.Repeat("x", 9000)},
			intent.Intent{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range tt.head {
				h.Set(k, v)
			}
			if diff := cmp.Diff(tt.want, intent.FromHeaders(h.Get)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func ExampleFromHeaders() {
	h := http.Header{}
	h.Set("X-Claude-Code-Session-Id", "712598c5")
	h.Set("X-Claude-Code-Agent-Id", "explore-1")
	fmt.Printf("%+v\n", intent.FromHeaders(h.Get).Session)
	// Output: {ID:712598c5/explore-1 Parent:712598c5 Harness:claude-code Final:false}
}
