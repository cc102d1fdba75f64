// SPDX-License-Identifier: Apache-2.0

package callid

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		response  string
		choice, n int32
		want      string
	}{
		{"chatcmpl-abc", 0, 0, "call_abc_0"},
		{"resp_0197-f", 0, 12, "call_0197-f_12"},
		{"msg_x", 2, 1, "call_x_2x1"},
		{"resp_", 0, 0, "call__ed35af2c050afbc_0"},
		{"", 0, 0, "call__cbf29ce484222325_0"},
		{"a/b", 0, 0, "call_a_b_e620c3190468cf61_0"},
	} {
		got := string(Append(nil, "call_", Suffix(c.response), c.choice, c.n))
		require.Equal(t, c.want, got)
	}
}

func TestIDsUniqueAndLegal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.String().Draw(rt, "a"), rapid.String().Draw(rt, "b")
		sa, sb := Suffix("resp_"+a), Suffix("resp_"+b)
		id := Append(nil, "srvtoolu_", sa, 127, 4095)
		require.True(t, Legal(id), "%s", id)
		require.LessOrEqual(t, len(id), 64)
		require.Equal(t, a == b, sa == sb)

		esc := Escape(a)
		require.True(t, Legal(esc), "%s", esc)
		require.Equal(t, a, Unescape(esc))
		if Legal(a) && !strings.HasPrefix(a, escaped) {
			require.Equal(t, a, esc)
		}
	})
	require.Equal(t, "tc_xnot base32", Unescape("tc_xnot base32"))
}

func TestSet(t *testing.T) {
	var s Set
	for i, c := range []struct{ given, want string }{
		{"x", "x"}, {"x", "call_r_1"}, {"", "call_r_2"}, {"y", "y"}, {"call_r_5", "call_r_5"}, {"", "call_r_5-"}, {"call_r_5-", "call_r_6"},
	} {
		id, n := s.Assign("call_", "r", 0, c.given)
		require.Equal(t, c.want, id)
		require.Equal(t, int32(i), n)
	}
}

// TestSetDrawn compares a set with a list of all IDs. A small alphabet causes collisions, also with generated IDs.
func TestSetDrawn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Set
		var seen []string
		for i, given := range rapid.SliceOfN(rapid.StringMatching(`(|[ab]{1,3}|c_r_[0-9]{1,2}-{0,2})`), 0, 40).Draw(rt, "given") {
			want := given
			if given == "" || slices.Contains(seen, given) {
				for want = "c_r_" + strconv.Itoa(i); slices.Contains(seen, want); {
					want += "-"
				}
			}
			seen = append(seen, want)
			id, n := s.Assign("c_", "r", 0, given)
			require.Equal(rt, want, id)
			require.Equal(rt, int32(i), n)
		}
		require.Equal(rt, len(seen) > len(s.few), s.many != nil, "a map only for many IDs")
	})
}

func TestSetAllocs(t *testing.T) {
	ids := strings.Split("a b c d e f g h", " ")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var s Set
		for _, id := range ids {
			s.Assign("call_", "r", 0, id)
		}
	}))
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{4, 1000, 40_000} {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = "call_" + strconv.Itoa(i)
		}
		b.Run("calls="+strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var s Set
				for _, id := range ids {
					s.Assign("call_", "r", 0, id)
				}
			}
		})
	}
}
