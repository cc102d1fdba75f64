// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/protocols/replay"
)

func testSigner(t *testing.T) *replay.Signer {
	t.Helper()
	s, err := replay.NewSigner(make([]byte, replay.KeySize), nil)
	require.NoError(t, err)
	return s
}

// TestConversation checks that each body extends the one before it, except for the mark and the tail, and that
// conversations differ from the beginning of the system text on.
func TestConversation(t *testing.T) {
	texts, err := loadCorpus()
	require.NoError(t, err)
	v := newConversation(texts, testSigner(t), 1, 30)
	for k := range v.ends {
		body := v.body(k)
		require.True(t, json.Valid(body))
		read, err := io.ReadAll(v.reader(k))
		require.NoError(t, err)
		require.Equal(t, string(body), string(read))
		require.Equal(t, v.size(k), len(body))
		if k > 0 {
			front, end := common(v.body(k-1), body)
			require.Equal(t, v.ends[k-1], front+strings.Index(string(body[front:]), "}]}"), "the mark moves")
			require.GreaterOrEqual(t, end, len(v.tail))
		}
	}
	other := newConversation(texts, testSigner(t), 2, 30)
	front, _ := common(v.body(0), other.body(0))
	require.Less(t, front, 200)
}

func TestCommon(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for _, x := range []struct {
		a, b       string
		front, end int
	}{
		{"", "", 0, 0}, {"a", "b", 0, 0}, {"ab", "ab", 2, 0}, {"aa", "aaa", 2, 0}, {"abc", "aXbc", 1, 2},
		{long + "1" + long, long + "2" + long, 9000, 9000}, {long, long + "y", 9000, 0},
	} {
		front, end := common([]byte(x.a), []byte(x.b))
		require.Equal(t, x.front, front)
		require.Equal(t, x.end, end)
	}
}

// TestStubEngine sends requests of several sizes on one connection.
func TestStubEngine(t *testing.T) {
	was := http.DefaultTransport
	defer func() { http.DefaultTransport = was }()
	stubEngines(func() []byte { return streamOf([]uint32{1, 2}, func(uint32) string { return "x" }) })
	c := &http.Client{Transport: http.DefaultTransport}
	defer c.CloseIdleConnections()
	for _, n := range []int{1, 100, 5000, 1 << 20, 7} {
		resp, err := c.Post("http://e.invalid/v1/completions", "application/json", bytes.NewReader(make([]byte, n)))
		require.NoError(t, err)
		out, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 2, strings.Count(string(out), "token_ids"))
	}
}

// TestRows measures one turn of each kind. It checks that every stage has a cost and that the stages leave little of
// the gateway's memory unexplained.
func TestRows(t *testing.T) {
	shared := bench.Shared("../../../..")
	if shared == "" {
		t.Skip("no shared test data: set WEFT_SHARED")
	}
	texts, err := loadCorpus()
	require.NoError(t, err)
	for i := range subjects {
		s := &subjects[i]
		rows, err := s.rows(&options{turns: 1, states: "warm,first,cold"}, shared, texts, 12)
		require.NoError(t, err, s.name)
		require.Len(t, rows, 3*(len(stageNames)+3)+7)
		for _, r := range rows {
			if r.Stage == "rest" {
				continue
			}
			require.Positive(t, r.US, r)
			if r.Stage == "total" {
				require.Greater(t, r.Allocs, 100.0, r)
			}
		}
	}
}

// TestWarm checks the memory of warm turns: of 100K tokens they take at most 800 allocations and 0.5 MB, and of 200K at
// most twice as many allocations as of 50K.
func TestWarm(t *testing.T) {
	shared := bench.Shared("../../../..")
	if shared == "" {
		t.Skip("no shared test data: set WEFT_SHARED")
	}
	texts, err := loadCorpus()
	require.NoError(t, err)
	for i := range subjects {
		s := &subjects[i]
		allocs := map[int]float64{}
		for _, size := range []int{50, 100, 200} {
			rows, err := s.rows(&options{turns: window, states: "warm"}, shared, texts, size)
			require.NoError(t, err, s.name)
			total := rows[slices.IndexFunc(rows, func(r row) bool { return r.Stage == "total" })]
			if allocs[size] = total.Allocs; size == 100 {
				require.LessOrEqual(t, total.Allocs, 800.0, s.name)
				require.LessOrEqual(t, total.KB, 0.5*1024, s.name)
			}
		}
		require.LessOrEqual(t, allocs[200], 2*allocs[50], s.name)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int{"12": 12, "100": 100, "100K": 100, "100k": 100, "100000": 100, "1000": 1, "2000K": 2000} {
		n, err := parseSize(s)
		require.NoError(t, err)
		require.Equal(t, want, n, s)
	}
	for _, s := range []string{"", "K", "0", "-1", "1500", "100M", "1.5K"} {
		_, err := parseSize(s)
		require.Error(t, err, s)
	}
}
