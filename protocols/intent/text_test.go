// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames tests that every name is parsed and other names are rejected.
func TestNames(t *testing.T) {
	require.Len(t, allHints.Names(), int(numHints))
	for h := range allHints.all() {
		require.Equal(t, setOf(h), MustHints(h.String()))
	}
	all, err := ParseHints(allHints.Names()...)
	require.NoError(t, err)
	require.Equal(t, allHints, all)
	require.Equal(t, setOf(hintServiceTier, hintTTFT), MustHints(" service-tier", "ttft"))
	_, err = ParseHints("tier", "importance")
	require.ErrorContains(t, err, `intent: unknown hint "importance": the hints are priority, tier,`)
	require.Panics(t, func() { MustHints("") })

	require.Len(t, Dialects(), int(weft))
	for _, name := range Dialects() {
		for f := range 1 << len(featureNames) {
			want := Target{kind: kindOf(name), version: "1", features: features(f)}
			var list []string
			if f != 0 {
				list = strings.Split(want.features.String(), ", ")
			}
			got, err := NewTarget(name, "1", list...)
			require.NoError(t, err)
			require.Equal(t, &want, got)
		}
	}
	to, err := NewTarget("llm_d", "")
	require.NoError(t, err)
	require.Equal(t, &Target{kind: llmd}, to)
	to, err = NewTarget("weft", "", "headers")
	require.NoError(t, err)
	require.Equal(t, &Target{kind: weft, features: inHeaders}, to)
	to, err = NewTarget("vllm", "", "priority_scheduling", " session-field")
	require.NoError(t, err)
	require.Equal(t, &Target{kind: vllm, features: priorityScheduling | sessionField}, to)
	_, err = NewTarget("vllm", "", "priority scheduling", "warp drive")
	require.EqualError(t, err, `intent: unknown feature "warp drive": the features are `+strings.Join(featureNames, ", "))
	for _, name := range []string{"", "none", "tgi"} {
		_, err = NewTarget(name, "")
		require.ErrorContains(t, err, "unknown dialect")
		require.Nil(t, Capabilities(name))
	}

	for text, want := range map[string]Polarity{"unknown": "", "higher is sooner": HigherSooner, "lower_is-sooner": LowerSooner} {
		var p Polarity
		require.NoError(t, p.UnmarshalText([]byte(text)))
		require.Equal(t, want, p)
	}
	require.Error(t, new(Polarity).UnmarshalText([]byte("sooner")))
}

func TestLookup(t *testing.T) {
	to := &Target{kind: sglang, features: priorityScheduling}
	c, ok := to.Lookup("priority")
	require.True(t, ok)
	require.Equal(t, HigherSooner, c.Polarity)
	to.features |= lowValuesFirst
	c, _ = to.Lookup("priority")
	require.Equal(t, LowerSooner, c.Polarity)
	_, ok = to.Lookup("tier")
	require.False(t, ok)
	_, ok = to.Lookup("importance")
	require.False(t, ok)
	_, ok = (&Target{kind: dynamo, version: "1.2"}).Lookup("tier")
	require.False(t, ok, "since 1.3.0")
}
