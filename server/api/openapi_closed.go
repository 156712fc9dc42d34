package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// closeNested adds to the schemas of requests those within them that are not within responses too: a later version may add
// fields to these.
func closeNested(all map[string]*huma.Schema, requests map[string]bool) {
	inside, responses := reach(all, requests), map[string]bool{}
	for name := range all {
		if !inside[name] {
			responses[name] = true
		}
	}
	open := reach(all, responses)
	for name := range inside {
		if !open[name] {
			requests[name] = true
		}
	}
}

// reach returns some schemas and all that they refer to.
func reach(all map[string]*huma.Schema, from map[string]bool) map[string]bool {
	reached := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if all[name] == nil || reached[name] {
			return
		}
		reached[name] = true
		for _, property := range all[name].Properties {
			visit(strings.TrimPrefix(property.Ref, schemaPrefix))
			if property.Items != nil {
				visit(strings.TrimPrefix(property.Items.Ref, schemaPrefix))
			}
		}
	}
	for name := range from {
		visit(name)
	}
	return reached
}
