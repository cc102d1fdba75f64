// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

const input = `{"id":1,"family":"hermes","text":"<think>a</think>b<tool_call>{\"name\":\"f\",\"arguments\":{\"x\": 1.0}}</tool_call>"}
{"id":"two","chunks":["<tool_call>{\"name\":\"f\"",",\"arguments\":{"],"note":"ignored"}
{"id":3,"family":"harmony","chunks_b64":["w6k=","w6k="],"init":{"start":"none"}}
{"id":4,"family":"no_such","text":"x"}
{"id":5,"family":"hermes"}
{"id":6,"family":"hermes","text":"x","init":{"start":"middle"}}
not json
{"id":8,"family":"hermes","text":"<tool_call>","tool_choice":"none"}
{"id":9,"family":"qwen3-coder","text":"{\"x\":1}","init":{"output":"guided_named","tool":"f"}}
{"id":10,"family":"hermes","text":"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>","parallel_tool_calls":false}
{"id":11,"family":"hermes","text":"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>","parallel_tool_calls":true}
`

func TestRun(t *testing.T) {
	want := []string{
		`{"id":1,"content":"b","reasoning":"a","calls":[{"name":"f","arguments":"{\"x\": 1.0}","id":""}],"aborted":[],"events":[["reason","a"],["text","b"],["call","f","{\"x\": 1.0}"]]}`,
		`{"id":"two","content":"","reasoning":"","calls":[],"aborted":[{"name":"f","why":"truncated"}],"events":[["abort","f","truncated"]]}`,
		`{"id":3,"content":"éé","reasoning":"","calls":[],"aborted":[],"events":[["text","éé"]]}`,
		`{"id":4,"error":"parsers: unknown family \"no_such\"; parse -families lists the families"}`,
		`{"id":5,"error":"no text, chunks or chunks_b64"}`,
		`{"id":6,"error":"init.start \"middle\": want none, reasoning or response"}`,
		`{"id":null,"error":"invalid character 'o' in literal null (expecting 'u')"}`,
		`{"id":8,"content":"<tool_call>","reasoning":"","calls":[],"aborted":[],"events":[["text","<tool_call>"]]}`,
		`{"id":9,"content":"","reasoning":"","calls":[{"name":"f","arguments":"{\"x\":1}","id":""}],"aborted":[],"events":[["call","f","{\"x\":1}"]]}`,
		`{"id":10,"content":"","reasoning":"","calls":[{"name":"f","arguments":"{}","id":""}],"aborted":[{"name":"g","why":"not_allowed"}],"events":[["call","f","{}"],["abort","g","not_allowed"]]}`,
		`{"id":11,"content":"","reasoning":"","calls":[{"name":"f","arguments":"{}","id":""},{"name":"g","arguments":"{}","id":""}],"aborted":[],"events":[["call","f","{}"],["call","g","{}"]]}`,
	}
	for _, split := range []string{"", "whole", "bytes", "3"} {
		var out strings.Builder
		args := []string{"-family", "hermes"}
		if split != "" {
			args = append(args, "-split", split)
		}
		require.EqualError(t, run(args, strings.NewReader(input), &out), "4 of 11 records have errors, the first is line 4")
		require.Equal(t, want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), "split %q", split)
	}
}

// A family that is refused is reported with its reason, in a record and as a flag.
func TestRefusedFamily(t *testing.T) {
	const reason = `parsers: unknown family "beam"; its format is a response_template of transformers, which this package does not read`
	var out strings.Builder
	require.Error(t, run(nil, strings.NewReader(`{"id":1,"family":"beam","text":"x"}`+"\n"), &out))
	var line struct{ Error string }
	require.NoError(t, json.Unmarshal([]byte(out.String()), &line))
	require.Equal(t, reason, line.Error)
	require.EqualError(t, run([]string{"-family", "beam"}, strings.NewReader(""), &out), "-family: "+reason)
	require.EqualError(t, run([]string{"-family", "no_such"}, strings.NewReader(""), &out), `-family: parsers: unknown family "no_such"; parse -families lists the families`)
}

func TestStats(t *testing.T) {
	measured = 10 * time.Millisecond
	defer func() { measured = time.Second }()
	var out strings.Builder
	require.NoError(t, run([]string{"-stats", "-split", "4"}, strings.NewReader(`{"id":1,"family":"hermes","text":"some plain text"}`+"\n"), &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last struct{ Stats map[string]float64 }
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	require.Equal(t, 15., last.Stats["bytes"])
	require.Equal(t, 4., last.Stats["chunks"])
	require.Positive(t, last.Stats["ns_per_chunk"])
	require.Contains(t, last.Stats, "mb_per_s")
	require.Contains(t, last.Stats, "allocs_per_chunk")
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-split", "0"}, {"-split", "x"}, {"-policy", "mine"}, {"no-such-file"}} {
		require.Error(t, run(args, strings.NewReader(""), &strings.Builder{}), "%q", args)
	}
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "parse", func(args []string, stdout *bytes.Buffer) error { return run(args, strings.NewReader(""), stdout) })
}
