// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExample sees the SDKs read the golden files of protocols as they are.
func TestExample(t *testing.T) {
	d := newDesk(t)
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			raw, err := os.ReadFile(a.golden)
			require.NoError(t, err)
			d.stream(raw)
			got, err := a.stream(t, d)
			require.NoError(t, err)
			compare(t, (&meaning{api: a}).of(collect(example())), got)
		})
	}
}

// TestScenes sees every scene come across, streamed, streamed with keep-alives everywhere, and whole.
func TestScenes(t *testing.T) {
	d := newDesk(t)
	for _, sc := range scenes() {
		for _, a := range apis {
			if sc.only != nil && !slices.Contains(sc.only, a) {
				continue
			}
			t.Run(sc.name+"/"+a.name, func(t *testing.T) {
				for _, alive := range []bool{false, true} {
					d.stream(a.encode(sc.setup, sc.events, alive))
					got, err := a.stream(t, d)
					require.NoError(t, err)
					compare(t, (&meaning{api: a, setup: sc.setup}).of(collect(sc.events)), got)
				}

				d.whole(a.whole(sc.setup, sc.events))
				got, err := a.read(t, d)
				require.NoError(t, err)
				compare(t, (&meaning{api: a, setup: sc.setup, whole: true}).of(collect(sc.events)), got)
			})
		}
	}
}
