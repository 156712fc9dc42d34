package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
)

// onceHeader is how a client says that a request it may repeat is to be
// carried out once. (The header is that of the IETF's draft
// draft-ietf-httpapi-idempotency-key-header.)
const onceHeader = "Idempotency-Key"

// replayedHeader marks the first answer when it is given again.
const replayedHeader = "Idempotency-Replayed"

// takesOnce says which operations take the header: every POST with a key.
func takesOnce(method string, op model.Operation) bool {
	return method == http.MethodPost && op.Scope != ""
}

// once notes the request's Idempotency-Key, if it has one. The engine claims it
// once it knows the form of the request to be right.
func (x *exchange) once() error {
	values := x.r.Header[onceHeader]
	if len(values) == 0 || !takesOnce(x.r.Method, x.call.Operation) {
		return nil
	}
	if len(values) > 1 {
		return model.Invalid(onceHeader, "is given twice")
	}
	if err := model.ValidateIdempotencyKey(values[0]); err != nil {
		return err
	}
	content, err := x.content()
	if err != nil {
		return err
	}
	x.call.Repeatable = &model.Repeatable{Key: values[0], Route: x.r.Method + " " + x.r.URL.Path, Content: content}
	return nil
}

// repeated is the answer to a request that was answered before. A handler returns
// it as an error, because it is not of the handler's type.
type repeated struct {
	Envelope[json.RawMessage, Meta]
}

// GetStatus implements huma.StatusError.
func (*repeated) GetStatus() int { return http.StatusOK }

// Error implements error.
func (*repeated) Error() string { return "answered before" }

// repeat makes the first answer that of the exchange.
func (x *exchange) repeat(first *engine.FirstAnswer) *repeated {
	x.call.Repeatable = nil
	x.call.Note("replayed", "true")
	x.w.Header().Set(replayedHeader, "true")
	return &repeated{Envelope[json.RawMessage, Meta]{Data: first.Data, Meta: x.meta()}}
}

// content is what two requests with the same key must share: the query and the
// body, which is put back. Of an upload it is what is known before the body is
// streamed, but for the Content-Type, which may name another boundary each time.
func (x *exchange) content() ([]byte, error) {
	if x.call.Operation.Action == model.ActionObjectUpload {
		header := x.r.Header
		return []byte(strings.Join([]string{
			x.r.URL.RawQuery, header.Get("If-None-Match"), header.Get("X-Checksum-Sha256"), header.Get("X-Checksum-Crc32c"), "",
		}, "\n")), nil
	}
	body, err := io.ReadAll(x.r.Body) // in memory already
	if err != nil {
		return nil, x.unreadable(err)
	}
	x.r.Body = io.NopCloser(bytes.NewReader(body))
	return append([]byte(x.r.URL.RawQuery+"\n"), body...), nil
}

// keepAnswer keeps the answer to a request with an Idempotency-Key before it
// leaves. Only what was done is kept: what was refused may be tried again.
func (x *exchange) keepAnswer(body []byte) {
	if x.call.Repeatable != nil && x.call.Once == "" && x.status == http.StatusOK {
		x.gate.log.Error("an operation has not claimed its Idempotency-Key", "operation", x.call.Operation.Action)
	}
	if x.call.Once == "" || x.status != http.StatusOK {
		return
	}
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		x.gate.log.Error("keep an answer", "request_id", x.call.RequestID, "error", err)
		return
	}
	x.gate.engine.EndOnce(x.call, answer.Data)
}
