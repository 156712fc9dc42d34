package web

import (
	"net/url"
	"strconv"
)

// listPage is one page of a list that is computed in full.
type listPage[T any] struct {
	Items []T
	Count int // of all items
	Page  int // number of this page, from 1
	// Previous and Next are the queries of the adjacent pages, "" if there is
	// none.
	Previous, Next string
}

// listPageOf returns the page that the query requests, by default the first.
func listPageOf[T any](all []T, query url.Values, each int) listPage[T] {
	last := max(1, (len(all)+each-1)/each)
	asked, _ := strconv.Atoi(query.Get("page"))
	page := max(1, min(asked, last))
	l := listPage[T]{Items: all[(page-1)*each : min(len(all), page*each)], Count: len(all), Page: page}
	if page > 1 {
		l.Previous = pageQuery(query, page-1)
	}
	if page < last {
		l.Next = pageQuery(query, page+1)
	}
	return l
}

// pageQuery returns the query with another page number.
func pageQuery(query url.Values, page int) string {
	other := url.Values{"page": {strconv.Itoa(page)}}
	for name, values := range query {
		if name != "page" && name != "done" {
			other[name] = values
		}
	}
	return "?" + other.Encode()
}
