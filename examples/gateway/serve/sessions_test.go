// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/intent"
)

// TestSessionClaims checks that an SGLang with sessions gets them, under names that differ between tenants, and that they are closed
// after the last request, after a compaction, and when they are idle.
func TestSessionClaims(t *testing.T) {
	for _, claims := range []bool{true, false} {
		t.Run(fmt.Sprint(claims), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var opened, closed []string
				s := &stub{answer: func(_ string, r *http.Request) (*http.Response, error) {
					body, _ := r.GetBody()
					var b struct {
						Session string `json:"session_id"`
					}
					if err := json.NewDecoder(body).Decode(&b); err != nil {
						return nil, err
					}
					mu.Lock()
					defer mu.Unlock()
					if r.URL.Path == "/close_session" {
						closed = append(closed, b.Session)
						return answerOf(200, ""), nil
					}
					opened = append(opened, b.Session)
					return answerOf(200, `data: {"index":0,"output_ids":[100],"meta_info":{"completion_tokens":1,"prompt_tokens":9,"finish_reason":{"type":"length"}}}`+"\n\ndata: [DONE]\n\n"), nil
				}}
				g := stubbed(t, 1, s, func(o *serve.Options) {
					o.Engines[0].Kind = upstream.SGLang{}
					if claims {
						var err error
						o.Engines[0].Hints, err = intent.NewTarget("sglang", "", "session field")
						require.NoError(t, err)
					}
					o.Policy.Trust = intent.MustHints("final")
					o.Tenant = func(r *http.Request) string { return r.Header.Get("X-Tenant") }
				})
				defer g.Close()
				ask := func(tenant, session, more string) string {
					t.Helper()
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(
						`{"model":"m","messages":[{"role":"user","content":"Hi"}],"agent":{"session":"`+session+`"`+more+`}}`))
					r.Header.Set("X-Tenant", tenant)
					w := httptest.NewRecorder()
					g.ServeHTTP(w, r)
					require.Equal(t, 200, w.Code, w.Body)
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return opened[len(opened)-1]
				}
				ended := func() []string {
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return slices.Clone(closed)
				}
				a, b := ask("a", "s", ""), ask("b", "s", "")
				if !claims {
					require.Empty(t, a+b)
					ask("a", "s", `,"final":true`)
					time.Sleep(time.Hour)
					require.Empty(t, ended())
					return
				}
				require.NotEqual(t, a, b)
				require.NotContains(t, []string{"", "s"}, a)
				require.Equal(t, a, ask("a", "s", ""))
				require.Empty(t, ended())
				ask("a", "s", `,"final":true`)
				require.Equal(t, []string{a}, ended())
				ask("a", "other", `,"compaction":{"trigger":"automatic"}`)
				require.Len(t, ended(), 2)
				time.Sleep(9 * time.Minute)
				require.Len(t, ended(), 2)
				ask("b", "s", "")
				time.Sleep(9 * time.Minute)
				require.Len(t, ended(), 2)
				time.Sleep(5 * time.Minute)
				require.Equal(t, []string{b}, ended()[2:])
			})
		})
	}
}
