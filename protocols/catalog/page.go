// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// page is a part of a list, as requested by Anthropic's clients. The zero value is the whole list.
type page struct {
	limit             int    // maximum number of models; 0 means all
	afterID, beforeID string // the model before the page, or after it; at most one is set
}

const (
	pageLimit = 20   // default limit
	maxLimit  = 1000 // largest limit of a request
)

// parsePage returns the page that a request specifies. Errors are *[apierr.Error].
func parsePage(query func(name string) string) (page, error) {
	p := page{limit: pageLimit, afterID: query("after_id"), beforeID: query("before_id")}
	if s := query("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxLimit {
			return p, apierr.Invalid("limit", "limit: it must be a number from 1 to %d.", maxLimit)
		}
		p.limit = n
	}
	if p.afterID != "" && p.beforeID != "" {
		return p, apierr.Invalid("before_id", "before_id: it may not be given along with after_id.")
	}
	return p, nil
}

// AppendPage appends the page of a list that a request specifies, in the style [Anthropic]. query returns a query
// parameter of the request, or "" if absent; AppendPage reads limit, after_id and before_id. It returns an
// *[apierr.Error] if a parameter is invalid or names a model that is not in the list.
func AppendPage(dst []byte, list []Model, query func(name string) string) ([]byte, error) {
	p, err := parsePage(query)
	if err != nil {
		return dst, err
	}
	return p.append(dst, list)
}

func (p page) append(dst []byte, list []Model) ([]byte, error) {
	part, more, err := p.cut(list)
	if err != nil {
		return dst, err
	}
	return appendPage(dst, part, more), nil
}

func (p page) cut(list []Model) (part []Model, more bool, err error) {
	at := func(param, id string) (int, error) {
		i := slices.IndexFunc(list, func(m Model) bool { return m.ID == id })
		if i < 0 {
			return 0, apierr.Invalid(param, "%s: there is no model %q.", param, id)
		}
		return i, nil
	}
	if p.beforeID != "" {
		i, err := at("before_id", p.beforeID)
		if err != nil {
			return nil, false, err
		}
		list = list[:i]
		if p.limit > 0 && len(list) > p.limit {
			return list[len(list)-p.limit:], true, nil
		}
		return list, false, nil
	}
	if p.afterID != "" {
		i, err := at("after_id", p.afterID)
		if err != nil {
			return nil, false, err
		}
		list = list[i+1:]
	}
	if p.limit > 0 && len(list) > p.limit {
		return list[:p.limit], true, nil
	}
	return list, false, nil
}

func appendPage(dst []byte, part []Model, more bool) []byte {
	dst = append(dst, `{"data":[`...)
	dst = appendModels(dst, part, Anthropic)
	dst = appendBool(dst, `],"has_more":`, more)
	dst = append(dst, `,"first_id":`...)
	if len(part) == 0 {
		return append(dst, `null,"last_id":null}`...)
	}
	dst = jsonw.AppendString(dst, part[0].ID)
	dst = append(dst, `,"last_id":`...)
	dst = jsonw.AppendString(dst, part[len(part)-1].ID)
	return append(dst, '}')
}
