package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humahttprouter"

	"holdfast/engine/model"
)

// operationKey is where a huma operation carries its row of the operations
// table.
const operationKey = "holdfast.operation"

// gatedAdapter puts the gate in front of everything huma registers.
type gatedAdapter struct {
	huma.Adapter
	gate *gate
	// api is set once huma has made it of this adapter.
	api huma.API
}

// Handle implements huma.Adapter. The operation's path is left as it is, for
// the OpenAPI document; the router gets a copy.
func (a *gatedAdapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	operation := op.Metadata[operationKey].(model.Operation)
	form := newForm(op, a.api.OpenAPI().Components.Schemas)
	routed := *op
	routed.Path = Prefix + routerPath(op.Path)
	a.Adapter.Handle(&routed, func(ctx huma.Context) {
		r, w, _ := humahttprouter.Unwrap(ctx)
		x := a.gate.begin(w, r, operation)
		defer x.end()
		x.humaContext, x.form = ctx, form
		if err := x.admit(); err != nil {
			x.refuse(err)
			return
		}
		if err := x.once(); err != nil {
			x.refuse(err)
			return
		}
		handler(x)
	})
}

// routerPath turns the key of an object into a catch-all: keys hold slashes,
// and a parameter would end at the first. The adapter itself turns the other
// {names} into :names.
func routerPath(path string) string {
	return strings.Replace(path, "/{key}", "/*key", 1)
}
