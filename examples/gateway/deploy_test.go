// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parseDeployed parses the arguments of a deployment, with a configuration file in place of /etc/weft/gateway.yaml.
func parseDeployed(t *testing.T, args []string) *config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(file, []byte("model: m\nengines: [{kind: embedded, url: local}]\n"), 0o600))
	i := slices.Index(args, "/etc/weft/gateway.yaml")
	require.GreaterOrEqual(t, i, 0)
	args = slices.Clone(args)
	args[i] = file
	c, err := parse(args, io.Discard)
	require.NoError(t, err)
	return c
}

// TestServiceUnit checks that gateway.service is valid, has flags of the gateway and leaves it the time that it may take to
// end.
func TestServiceUnit(t *testing.T) {
	data, err := os.ReadFile("gateway.service")
	require.NoError(t, err)
	value := func(key string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindSubmatch(data)
		require.NotNil(t, m, key)
		return string(m[1])
	}
	command := strings.Fields(value("ExecStart"))
	c := parseDeployed(t, command[1:])
	require.Equal(t, logFormat("json"), c.LogFormat)
	require.Equal(t, "/bin/kill -HUP $MAINPID", value("ExecReload"))
	var stop float64
	_, err = fmt.Sscan(value("TimeoutStopSec"), &stop)
	require.NoError(t, err)
	require.Greater(t, stop, c.Grace+10)

	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "gateway.service") // verify requires that the program exists
	require.NoError(t, os.WriteFile(unit, bytes.ReplaceAll(data, []byte(command[0]), []byte(self)), 0o600))
	out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// TestContainerfile checks that the Containerfile copies all modules that the gateway needs, with their version of Go, and
// that its command has flags of the gateway.
func TestContainerfile(t *testing.T) {
	data, err := os.ReadFile("Containerfile")
	require.NoError(t, err)
	text := string(data)
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`=> \.\./(\w+)`).FindAllStringSubmatch(string(mod), -1) {
		require.Contains(t, text, "\nCOPY "+m[1]+" "+m[1]+"\n")
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	require.Contains(t, text, "golang:"+version[1]+" ")

	list := regexp.MustCompile(`(?m)^CMD (.*)$`).FindStringSubmatch(text)
	require.NotNil(t, list)
	var args []string
	require.NoError(t, json.Unmarshal([]byte(list[1]), &args))
	c := parseDeployed(t, args)
	require.Equal(t, "0.0.0.0:8080", c.Listen)
	require.False(t, c.Anonymous)
	require.Contains(t, text, "\nEXPOSE 8080\n")
	require.Regexp(t, `(?m)^USER \d+`, text)
}
