package model

// Also names another operation that an operation also performs. The caller needs
// everything that operation needs: the scope or role, the toggle, the budget.
type Also struct {
	Act Action
	// Field and Value limit it to requests whose JSON body has this text in this
	// field. If Field is empty, every request performs the act.
	Field, Value string
	// When describes a condition that only the engine can evaluate, in words for
	// the API description; the engine checks it through [Operation.Sometimes].
	When string
}

// always reports whether every request of the operation performs the act.
func (a Also) always() bool { return a.Field == "" && a.When == "" }

// also makes every request of the operation perform another act.
func (o Operation) also(act Action) Operation {
	o.Others = append(o.Others, Also{Act: act})
	return o
}

// alsoWith makes requests whose body has value in field perform another act.
func (o Operation) alsoWith(field, value string, act Action) Operation {
	o.Others = append(o.Others, Also{Act: act, Field: field, Value: value})
	return o
}

// alsoWhen makes requests perform another act under a condition that depends on
// the current state.
func (o Operation) alsoWhen(condition string, act Action) Operation {
	o.Others = append(o.Others, Also{Act: act, When: condition})
	return o
}

// AsksBody reports whether a request's requirements depend on its body.
func (o Operation) AsksBody() bool {
	for _, other := range o.Others {
		if other.Field != "" {
			return true
		}
	}
	return false
}

// For returns the operation of one request, given the texts in its body. It
// resolves every condition that depends on the body.
func (o Operation) For(text func(field string) string) Operation {
	var others []Also
	for _, other := range o.Others {
		if other.Field != "" {
			if text(other.Field) != other.Value {
				continue
			}
			other.Field, other.Value = "", ""
		}
		others = append(others, other)
	}
	o.Others = others
	return o
}

// Acts returns the operation and the operations that each of its requests also
// performs. A request is authorized if it may do all of them.
func (o Operation) Acts() []Operation {
	acts := []Operation{o}
	for _, other := range o.Others {
		if other.always() {
			acts = append(acts, OperationFor(other.Act))
		}
	}
	return acts
}

// Sometimes returns the operations that a request also performs if the condition
// that the engine evaluates holds.
func (o Operation) Sometimes() (acts []Operation) {
	for _, other := range o.Others {
		if other.When != "" {
			acts = append(acts, OperationFor(other.Act))
		}
	}
	return acts
}
