// SPDX-License-Identifier: Apache-2.0

package jsonscan

// manySearches is the number of searches in one object after which Finder builds a map, because many searches through
// many fields would take quadratic time.
const manySearches = 16

// Finder looks up fields of one object. The first few lookups compare all fields in order, as [Value.Get] does. Then it
// builds a map, so that n lookups in an object of n fields take linear time. A Finder is not safe for concurrent use by
// multiple goroutines.
type Finder struct {
	object Value
	asked  int
	index  map[string]Value
}

// NewFinder returns a finder for the fields of an object; in other values it finds nothing.
func NewFinder(object Value) Finder { return Finder{object: object} }

// Get returns the field called name. The value does not exist if the object lacks it.
func (f *Finder) Get(name string) Value {
	if f.index == nil {
		if f.asked++; f.asked <= manySearches {
			return f.object.Get(name)
		}
		f.index = map[string]Value{}
		if f.object.Kind() == Object {
			for m := f.object.First(); m.Exists(); m = f.object.Next(m) {
				f.index[m.Key()] = m // names are unique: Scan rejects duplicates
			}
		}
	}
	return f.index[name]
}
