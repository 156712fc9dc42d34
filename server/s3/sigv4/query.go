package sigv4

import (
	"iter"
	"net/url"
	"slices"
	"strings"
)

// Query is a decoded query, its parameters in order.
type Query []parameter

type parameter struct{ name, value string }

// ParseQuery decodes a query as its signature covers it. Unlike in HTML forms, + stands for itself, and only & separates.
// The query that it returns with an error has the parameters ahead of the malformed one.
func ParseQuery(raw string) (Query, error) {
	var query Query
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.PathUnescape(name)
		if err == nil {
			value, err = url.PathUnescape(value)
		}
		if err != nil {
			return query, refuse("InvalidURI", "Couldn't parse the specified URI: the query is not percent-encoded")
		}
		query = append(query, parameter{name, value})
	}
	return query, nil
}

func (q Query) index(name string) int {
	return slices.IndexFunc(q, func(p parameter) bool { return p.name == name })
}

// Has reports whether the query has a parameter.
func (q Query) Has(name string) bool { return q.index(name) >= 0 }

// Get returns the first value of a parameter, "" if the query does not have it.
func (q Query) Get(name string) string {
	if i := q.index(name); i >= 0 {
		return q[i].value
	}
	return ""
}

// Names returns the names of the parameters.
func (q Query) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range q {
			if !yield(p.name) {
				return
			}
		}
	}
}
