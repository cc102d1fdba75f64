// SPDX-License-Identifier: Apache-2.0

package jsonscan

// manySearches is the number of searches in one object from which a map pays: many searches through many members would
// take quadratic time.
const manySearches = 16

// Finder finds the members of one object. The first few searches look at the members in order, as [Value.Get] does; then
// it makes a map, so that n searches in an object of n members take linear time. One goroutine at a time.
type Finder struct {
	object Value
	asked  int
	index  map[string]Value
}

// NewFinder returns a finder for the members of an object; in other values it finds nothing.
func NewFinder(object Value) Finder { return Finder{object: object} }

// Get returns the member called name, absent if there is none.
func (f *Finder) Get(name string) Value {
	if f.index == nil {
		if f.asked++; f.asked <= manySearches {
			return f.object.Get(name)
		}
		f.index = map[string]Value{}
		if f.object.Kind() == Object {
			for m := f.object.First(); m.Exists(); m = f.object.Next(m) {
				f.index[m.Key()] = m // no name is there twice: Scan refuses that
			}
		}
	}
	return f.index[name]
}
