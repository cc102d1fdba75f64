// SPDX-License-Identifier: Apache-2.0

package block

// ResidueBytes returns the number of bytes of raw JSON that a detached request holds in addition to its fields.
func ResidueBytes(r *Request) int {
	n := r.rest.bytes()
	for i := range r.view.Tools {
		n += r.view.Tools[i].rest.bytes() + r.view.Tools[i].space.bytes() + len(r.view.Tools[i].JSON)
	}
	var blocks func(list []Block)
	blocks = func(list []Block) {
		for i := range list {
			n += list[i].rest.bytes() + list[i].env.bytes() + len(list[i].JSON)
			blocks(list[i].Content)
		}
	}
	for i := range r.view.Turns {
		n += r.view.Turns[i].rest.bytes()
		blocks(r.view.Turns[i].Blocks)
	}
	return n
}

// bytes returns the number of bytes of raw JSON in a residue.
func (r *residue) bytes() (n int) {
	if r == nil {
		return 0
	}
	n = len(r.value)
	for _, x := range r.add {
		n += len(x.key) + len(x.value)
	}
	for _, in := range r.inner {
		n += in.res.bytes()
	}
	return n
}
