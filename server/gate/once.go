package gate

import (
	"context"
	"net/http"

	"holdfast/engine/model"
)

// OnceHeader is how a client says that a request it may repeat is to be
// carried out once. (The header is that of the IETF's draft
// draft-ietf-httpapi-idempotency-key-header.)
const OnceHeader = "Idempotency-Key"

// ReplayedHeader marks the first answer when it is given again.
const ReplayedHeader = "Idempotency-Replayed"

// Once notes a request's Idempotency-Key, if it has one, before next serves
// it. The engine claims the key when it carries the request out. content is
// what repetitions must share.
func Once(content func(*http.Request) ([]byte, error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repeatable, err := repeatableOf(r, content)
		if err != nil {
			Refuse(w, r, err)
			return
		}
		CallOf(r.Context()).Repeatable = repeatable
		next.ServeHTTP(w, r)
	})
}

func repeatableOf(r *http.Request, content func(*http.Request) ([]byte, error)) (*model.Repeatable, error) {
	values := r.Header[OnceHeader]
	switch {
	case len(values) == 0:
		return nil, nil
	case len(values) > 1:
		return nil, model.Invalid(OnceHeader, "is given twice")
	}
	if err := model.ValidateIdempotencyKey(values[0]); err != nil {
		return nil, err
	}
	shared, err := content(r)
	if err != nil {
		return nil, err
	}
	return &model.Repeatable{Key: values[0], Route: r.Method + " " + r.URL.Path, Content: shared}, nil
}

// Keep keeps the answer to a request with an Idempotency-Key before it leaves.
// Only what was done is kept: what was refused may be tried again.
func Keep(ctx context.Context, encode func() ([]byte, error)) error {
	x := of(ctx)
	if x.call.Once == "" {
		if x.call.Repeatable != nil {
			x.gate.Log.Error("an operation has not claimed its Idempotency-Key", "operation", x.call.Operation.Action)
		}
		return nil
	}
	answer, err := encode()
	if err == nil {
		x.gate.Engine.Core.EndOnce(x.call, answer)
	}
	return err
}

// Replay notes that the request is answered as its first one was.
func Replay(ctx context.Context) {
	x := of(ctx)
	x.call.Repeatable = nil
	x.call.Note("replayed", "true")
	x.Header().Set(ReplayedHeader, "true")
}
