// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
)

// A request is a request that an SDK sends, and the content that we must read from it.
type request struct {
	name string
	send func(d *desk) error
	want string // as dump writes it
}

// checkRequests sends each request, reads its body, and sees it come out of our encoder byte for byte.
func checkRequests(t *testing.T, a *api, path string, decode func([]byte, *block.Limits) (*block.Request, error), list []request) {
	d := newDesk(t)
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			d.whole(a.whole(setup{}, example()))
			require.NoError(t, r.send(d))
			q := d.last()
			require.Equal(t, path, q.path)
			req, err := decode(q.body, nil)
			require.NoError(t, err, "%s", q.body)
			if diff := cmp.Diff(strings.TrimSpace(r.want), strings.TrimSpace(dump(req))); diff != "" {
				t.Errorf("%s\n%s\n-want +read\n%s", q.body, dump(req), diff)
			}
			out, err := req.AppendBody(nil)
			require.NoError(t, err)
			require.Equal(t, string(q.body), string(out))
		})
	}
}
