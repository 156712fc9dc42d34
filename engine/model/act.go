package model

// Also is an act of another operation that an operation comes to as well. Its
// caller needs what that operation needs: the scope or role, the toggle, the
// budget.
type Also struct {
	Act Action
	// Field and Value limit it to requests whose JSON body has this field with
	// this text. Without a field every request comes to the act.
	Field, Value string
	// When limits it, in words for the description, to what only the engine can
	// tell; the engine then asks for it by [Operation.Sometimes].
	When string
}

// always reports whether every request of the operation comes to the act.
func (a Also) always() bool { return a.Field == "" && a.When == "" }

// also has every request of the operation come to another act, too.
func (o Operation) also(act Action) Operation {
	o.Others = append(o.Others, Also{Act: act})
	return o
}

// alsoWith has requests whose body has a field with a value come to another act.
func (o Operation) alsoWith(field, value string, act Action) Operation {
	o.Others = append(o.Others, Also{Act: act, Field: field, Value: value})
	return o
}

// alsoWhen has requests come to another act under a condition that depends on
// what there is.
func (o Operation) alsoWhen(condition string, act Action) Operation {
	o.Others = append(o.Others, Also{Act: act, When: condition})
	return o
}

// AsksBody reports whether the body says what a request needs.
func (o Operation) AsksBody() bool {
	for _, other := range o.Others {
		if other.Field != "" {
			return true
		}
	}
	return false
}

// For returns the operation of a request, given the texts in its body: what
// depends on the body is settled, one way or the other.
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

// Acts returns the operation and those that each of its requests comes to as
// well. A request is let in when it may do all of them.
func (o Operation) Acts() []Operation {
	acts := []Operation{o}
	for _, other := range o.Others {
		if other.always() {
			acts = append(acts, OperationFor(other.Act))
		}
	}
	return acts
}

// Sometimes returns the operations that a request comes to under a condition
// that the engine has found to hold.
func (o Operation) Sometimes() (acts []Operation) {
	for _, other := range o.Others {
		if other.When != "" {
			acts = append(acts, OperationFor(other.Act))
		}
	}
	return acts
}
