package gate

import "holdfast/engine/model"

// OnceHeader is how a client says that a request it may repeat is to be
// carried out once. (The header is that of the IETF's draft
// draft-ietf-httpapi-idempotency-key-header.)
const OnceHeader = "Idempotency-Key"

// ReplayedHeader marks the first answer when it is given again.
const ReplayedHeader = "Idempotency-Replayed"

// Once notes the request's Idempotency-Key, if it has one. The engine claims the
// key when it carries the request out. content is what repetitions must share.
func (x *Exchange) Once(content func(*Exchange) ([]byte, error)) error {
	values := x.Request.Header[OnceHeader]
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return model.Invalid(OnceHeader, "is given twice")
	}
	if err := model.ValidateIdempotencyKey(values[0]); err != nil {
		return err
	}
	shared, err := content(x)
	if err != nil {
		return err
	}
	x.Call.Repeatable = &model.Repeatable{Key: values[0], Route: x.Request.Method + " " + x.Request.URL.Path, Content: shared}
	return nil
}

// Keep keeps the data that answer a request with an Idempotency-Key, before they
// leave. Only what was done is kept: what was refused may be tried again.
func (x *Exchange) Keep(data any, encode func(any) ([]byte, error)) error {
	if x.Call.Once == "" {
		if x.Call.Repeatable != nil {
			x.gate.Log.Error("an operation has not claimed its Idempotency-Key", "operation", x.Call.Operation.Action)
		}
		return nil
	}
	answer, err := encode(data)
	if err == nil {
		x.gate.Engine.Core.EndOnce(x.Call, answer)
	}
	return err
}

// Replay notes that the request is answered as its first one was.
func (x *Exchange) Replay() {
	x.Call.Repeatable = nil
	x.Call.Note("replayed", "true")
	x.Header().Set(ReplayedHeader, "true")
}
