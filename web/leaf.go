package web

import (
	"net/url"
	"strconv"
)

// leaf is a page of a list that is computed whole.
type leaf[T any] struct {
	Items []T
	Count int // of all
	Page  int // which this is, from 1
	// Previous and Next are the queries of the pages beside it, "" for none.
	Previous, Next string
}

// turn opens a list at the page that the query asks for; anything that is no
// page is the first.
func turn[T any](all []T, query url.Values, each int) leaf[T] {
	last := max(1, (len(all)+each-1)/each)
	asked, _ := strconv.Atoi(query.Get("page"))
	page := max(1, min(asked, last))
	l := leaf[T]{Items: all[(page-1)*each : min(len(all), page*each)], Count: len(all), Page: page}
	if page > 1 {
		l.Previous = pageQuery(query, page-1)
	}
	if page < last {
		l.Next = pageQuery(query, page+1)
	}
	return l
}

// pageQuery is the query with another page.
func pageQuery(query url.Values, page int) string {
	other := url.Values{"page": {strconv.Itoa(page)}}
	for name, values := range query {
		if name != "page" && name != "done" {
			other[name] = values
		}
	}
	return "?" + other.Encode()
}
