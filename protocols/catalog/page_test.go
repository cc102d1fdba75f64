// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
)

func TestPage(t *testing.T) {
	var list []Model
	for i := range 25 {
		list = append(list, Model{ID: fmt.Sprint("m", i)})
	}
	for query, want := range map[string]string{
		"":                        "m0…m19 true",
		"limit=1000":              "m0…m24 false",
		"limit=25":                "m0…m24 false",
		"limit=24":                "m0…m23 true",
		"after_id=m19":            "m20…m24 false",
		"after_id=m24":            " false",
		"after_id=m3&limit=2":     "m4…m5 true",
		"before_id=m3":            "m0…m2 false",
		"before_id=m3&limit=2":    "m1…m2 true",
		"before_id=m0":            " false",
		"limit=0":                 "limit: it must be a number from 1 to 1000.",
		"limit=1001":              "limit: it must be a number from 1 to 1000.",
		"limit=x":                 "limit: it must be a number from 1 to 1000.",
		"after_id=m99":            `after_id: there is no model "m99".`,
		"before_id=M1":            `before_id: there is no model "M1".`,
		"after_id=m1&before_id=x": "before_id: it may not be given along with after_id.",
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		page, err := parsePage(q.Get)
		var body []byte
		if err == nil {
			body, err = page.append(nil, list)
		}
		if err != nil {
			require.IsType(t, &apierr.Error{}, err)
			require.Equal(t, want, apierr.Wrap(err).Message, query)
			require.Equal(t, 400, apierr.Wrap(err).HTTPStatus(apierr.Anthropic))
			continue
		}
		var got struct {
			Data    []struct{ ID string }
			HasMore bool    `json:"has_more"`
			First   *string `json:"first_id"`
			Last    *string `json:"last_id"`
		}
		require.NoError(t, json.Unmarshal(body, &got))
		text := ""
		if len(got.Data) > 0 {
			text = got.Data[0].ID + "…" + got.Data[len(got.Data)-1].ID
			require.Equal(t, text, *got.First+"…"+*got.Last)
		} else {
			require.Nil(t, got.First)
			require.Nil(t, got.Last)
		}
		require.Equal(t, want, fmt.Sprint(text, " ", got.HasMore), query)
	}
	all, err := page{}.append(nil, list)
	require.NoError(t, err)
	require.Equal(t, string(AppendList(nil, list, Anthropic)), string(all))
}

// TestPages reads all pages of a list in both directions, as a client does.
func TestPages(t *testing.T) {
	var list []Model
	for i := range 10 {
		list = append(list, Model{ID: fmt.Sprint(i)})
	}
	for limit := 1; limit < 12; limit++ {
		for _, back := range []bool{false, true} {
			p, seen, more := page{limit: limit}, "", true
			if back {
				p.beforeID, seen = "9", "9"
			}
			for more {
				body, err := p.append(nil, list)
				require.NoError(t, err)
				got, err := ParseList(body)
				require.NoError(t, err)
				part := make([]string, 0, len(got))
				for _, m := range got {
					part = append(part, m.ID)
				}
				if back {
					seen, p.beforeID = strings.Join(part, "")+seen, part[0]
				} else {
					seen, p.afterID = seen+strings.Join(part, ""), part[len(part)-1]
				}
				more = strings.Contains(string(body), `"has_more":true`)
			}
			require.Equal(t, "0123456789", seen)
		}
	}
}

func TestETag(t *testing.T) {
	a := ETag(AppendList(nil, []Model{{ID: "a"}}, Codex))
	require.Regexp(t, `^"[0-9a-f]{24}"$`, a)
	require.Equal(t, a, ETag(AppendList(nil, []Model{{ID: "a"}}, Codex)))
	require.NotEqual(t, a, ETag(AppendList(nil, []Model{{ID: "b"}}, Codex)))
}
