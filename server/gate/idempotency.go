package gate

import "holdfast/engine/model"

// IdempotencyHeader is the header by which a client marks a request, which it may repeat, to be executed once. (It is from
// the IETF draft draft-ietf-httpapi-idempotency-key-header.)
const IdempotencyHeader = "Idempotency-Key"

// ReplayedHeader marks a repetition of the first response.
const ReplayedHeader = "Idempotency-Replayed"

// NoteIdempotencyKey notes the request's Idempotency-Key, if it has one. The engine claims the key when it executes the request.
// content returns what repetitions must share.
func (x *Exchange) NoteIdempotencyKey(content func(*Exchange) ([]byte, error)) error {
	values := x.Request.Header[IdempotencyHeader]
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return model.Invalid(IdempotencyHeader, "is given twice")
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

// Keep stores the data of the response to a request with an Idempotency-Key before it is sent. Only successful
// requests are kept: a rejected one may be retried.
func (x *Exchange) Keep(data any, encode func(any) ([]byte, error)) error {
	if x.Call.Idempotent == "" {
		if x.Call.Repeatable != nil {
			x.gate.Log.Error("an operation has not claimed its Idempotency-Key", "operation", x.Call.Operation.Action)
		}
		return nil
	}
	answer, err := encode(data)
	if err == nil {
		x.gate.Engine.Core.EndIdempotent(x.Call, answer)
	}
	return err
}

// Replay records that the request gets the response of the first one.
func (x *Exchange) Replay() {
	x.Call.Repeatable = nil
	x.Call.Note("replayed", "true")
	x.Header().Set(ReplayedHeader, "true")
}
