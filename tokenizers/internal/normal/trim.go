// SPDX-License-Identifier: Apache-2.0

package normal

// Trim releases scratch space if it holds more than max bytes of text with its origins.
func (b *Buffer) Trim(max int) {
	for i := range b.text {
		if t := &b.text[i]; cap(t.B)+8*cap(t.From) > max {
			*b = Buffer{}
			return
		}
	}
}
