// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/family"
)

// TestRefusedFamilies tests that names of other engines are refused with a reason.
func TestRefusedFamilies(t *testing.T) {
	for _, name := range []string{"xing4_0", "xingchen4", "iquest_coder", "openpanguv2", "k2_horizon", "plamo3", "hyperclovax_seed_think", "functionary", "functionary_v3.2", "Solar-Open", "beam", "glm4",
		"muse_spark", "muse_spark_open", "musespark1x", "minicpmv"} {
		_, err := parsers.New(name, nil)
		require.Error(t, err)
		require.Regexp(t, `^parsers: unknown family ".*"; .*(no public|no grammar describes that yet|no grammar describes yet|does not read|cannot be distinguished)`, err.Error())
	}
}

// A combination without one of its names is reported as it was given.
func TestHalfACombination(t *testing.T) {
	for name, want := range map[string]string{
		"qwen3_coder+":  `the name ends in "+"; the family of the reasoning must come after it`,
		"qwen3_coder+ ": `the name ends in "+"; the family of the reasoning must come after it`,
		"no_such+":      `the name ends in "+"; the family of the reasoning must come after it`,
		"+qwen3":        `the name begins with "+"; the family of the calls must come before it`,
		"+":             `the name begins with "+"; the family of the calls must come before it`,
	} {
		_, err := parsers.New(name, nil)
		got, ok := errors.AsType[*parsers.UnknownFamilyError](err)
		require.True(t, ok, name)
		require.Equal(t, name, got.Name)
		require.EqualError(t, err, fmt.Sprintf("parsers: unknown family %q; %s", name, want))
	}
}

// A combination is compiled once, regardless of the names by which its families are looked up.
func TestCombinationsOfAliases(t *testing.T) {
	r := parsers.Default()
	tools, reasoning := family.New("qwen3_coder"), family.New("nemotron_deci")
	require.NotEmpty(t, tools.Aliases)
	require.NotEmpty(t, reasoning.Aliases)
	want, err := r.Lookup(tools.Name + "+" + reasoning.Name)
	require.NoError(t, err)
	for _, a := range append(tools.Aliases, tools.Name) {
		for _, b := range append(reasoning.Aliases, reasoning.Name) {
			got, err := r.Lookup(a + "+" + b)
			require.NoError(t, err)
			require.Same(t, want, got, "%s+%s", a, b)
		}
	}

	// A shadowed family keeps its aliases, and its combinations stay its own.
	mine := family.New("qwen3_coder")
	mine.Aliases, mine.Tagged.Close.Text = nil, "</mine>"
	own, err := r.Extend(mine)
	require.NoError(t, err)
	for name, end := range map[string]string{tools.Name: "</mine>", tools.Aliases[0]: tools.Tagged.Close.Text} {
		g, err := own.Lookup(name + "+" + reasoning.Name)
		require.NoError(t, err)
		require.Equal(t, end, g.Tagged.Close.Text, name)
	}
}

func TestModelInsteadOfFamily(t *testing.T) {
	for name, want := range map[string]parsers.UnknownFamilyError{
		"Qwen/Qwen3-Coder-30B-A3B-Instruct": {Model: "qwen3_coder"},
		"Qwen3-30B-A3B-Thinking-2507":       {Model: "qwen3_thinking"},
		"gpt-oss-120b":                      {Model: "harmony"},
		"Qwen/QwQ-32B":                      {Model: "qwen25+deepseek_r1"},
		"qwen3_codr":                        {Model: "qwen3", Near: []string{"qwen3_coder"}},
		"my-model":                          {},
	} {
		_, err := parsers.New(name, nil)
		got, ok := errors.AsType[*parsers.UnknownFamilyError](err)
		require.True(t, ok, name)
		require.Equal(t, name, got.Name)
		require.Equal(t, want.Near, got.Near, name)
		require.Equal(t, want.Model, got.Model, name)
	}
	_, err := parsers.New("Qwen/Qwen3-Coder-30B-A3B-Instruct", nil)
	require.EqualError(t, err, `parsers: unknown family "Qwen/Qwen3-Coder-30B-A3B-Instruct"; `+
		`it is the name of a model of family qwen3_coder`)
	_, err = parsers.New("qwen3_codr", nil)
	require.EqualError(t, err, `parsers: unknown family "qwen3_codr"; did you mean qwen3_coder?`)
}

func TestExtendFunc(t *testing.T) {
	var got []*parsers.Options
	r := parsers.Default().ExtendFunc("mine", func(o *parsers.Options) (parsers.Stream, error) {
		got = append(got, o)
		switch o.Choice {
		case 1:
			return nil, nil
		case 2:
			return nil, errors.New("not that")
		}
		return &shout{}, nil
	})
	_, err := r.New("mine", nil)
	require.NoError(t, err)
	require.Equal(t, &parsers.Options{}, got[0])
	_, err = r.New("mine", &parsers.Options{Choice: 1})
	require.EqualError(t, err, "parsers: mine: its function returned no Stream")
	_, err = r.New("mine", &parsers.Options{Choice: 2})
	require.EqualError(t, err, "not that")
	require.Len(t, got, 3)
}
