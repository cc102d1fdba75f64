// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// Of two engines that should have a prompt, the one that never has what was estimated costs almost what one without it does.
func TestDistrustCosts(t *testing.T) {
	var doubted, trusted trust
	for range 40 {
		require.EqualValues(t, -800, doubted.judge(800, event.Tokens{Prompt: 1000}, 16))
		require.Zero(t, trusted.judge(800, event.Tokens{Prompt: 1000, Cached: 790}, 16))
		require.Zero(t, trusted.judge(800, event.Tokens{Prompt: 1000, CachedEstimated: true}, 16), "not reported")
	}
	require.Less(t, doubted.value(), 0.05)
	require.Equal(t, 1.0, trusted.value())

	of := map[index.WorkerID]*trust{}
	r := router.New(index.New(16, nil), &router.Options{Policy: withTrust(nil, of), FixedRates: true})
	hashes := make([]uint64, 50)
	for i := range hashes {
		hashes[i] = uint64(i + 1)
	}
	var ids []index.WorkerID
	for _, name := range []string{"doubted", "trusted", "without"} {
		id, err := r.AddWorker(index.Key{Instance: name}, policy.Both, nil)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	of[ids[0]], of[ids[1]] = &doubted, &trusted
	view := policy.View{BlockSize: 16, Matches: []index.Match{{Depth: 50}, {Depth: 50}, {}}}
	for _, id := range ids {
		w := policy.Worker{ID: id}
		w.Engine.Prefill = 0.1
		view.Workers = append(view.Workers, w)
	}
	p := withTrust(nil, of)
	costs := make([]policy.Terms, 3)
	p.Costs(&view, &policy.Request{Tokens: 1000, Hashes: hashes}, costs)
	last := len(p.Terms()) - 1
	require.Equal(t, policy.Term{Name: "distrust", Unit: "ms"}, p.Terms()[last])
	require.Zero(t, costs[1][last])
	require.Zero(t, costs[2][last])
	require.Less(t, costs[1].Sum(), costs[0].Sum())
	require.Less(t, costs[0].Sum(), costs[2].Sum())
	require.Greater(t, costs[0].Sum(), costs[1].Sum()+0.9*(costs[2].Sum()-costs[1].Sum()))

	other, err := policy.Named("round_robin")
	require.NoError(t, err)
	require.Equal(t, other, withTrust(other, of), "its costs are not times")
}
