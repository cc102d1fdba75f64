// SPDX-License-Identifier: Apache-2.0

package vllm_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/tokenizers/mini"
)

// An engine that always generates the same text and reports the blocks stored in its cache.
func Example() {
	e := vllm.New(mini.Load(), &vllm.Options{
		Script: func(vllm.Prompt) vllm.Reply { return vllm.Reply{Text: "Hello there, and a good day to you."} },
		Speed:  math.Inf(1), BlockSize: 4,
	})
	defer e.Close()
	defer e.Subscribe(func(b kvevent.Batch) {
		for _, ev := range b.Events {
			fmt.Println(ev.Kind, len(ev.BlockHashes), "blocks")
		}
	})()
	s := httptest.NewServer(e)
	defer s.Close()
	resp, err := http.Post(s.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":[1,2,3,4,5,6,7,8,9],"max_tokens":3}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // after an error the body is incomplete
	fmt.Println(strings.Contains(string(body), `"completion_tokens":3`))
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// stored 2 blocks
	// true
}
