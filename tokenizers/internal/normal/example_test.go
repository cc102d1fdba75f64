// SPDX-License-Identifier: Apache-2.0

package normal_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/normal"
)

func ExampleRun() {
	steps := []normal.Step{normal.NFD(), normal.Lowercase(), normal.StripAccents()}
	text := []byte("Été")
	var b normal.Buffer
	out := normal.Run(steps, normal.Text{B: text, From: normal.Origins(nil, text)}, &b)
	fmt.Printf("%s %v\n", out.B, out.From)
	// Output: ete [{0 2} {2 3} {3 5}]
}

func ExamplePrecompiled() {
	step, _, err := normal.Precompiled(charsmap(map[string]string{"ﬁ": "fi", "\t": " "}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var b normal.Buffer
	fmt.Printf("%s\n", normal.Run([]normal.Step{step}, normal.Text{B: []byte("ﬁn\t!")}, &b).B)
	// Output: fin !
}
