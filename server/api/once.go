package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"holdfast/engine/model"
)

// onceHeader is how a client says that a request it may repeat is to be
// carried out once. (The header is that of the IETF's draft
// draft-ietf-httpapi-idempotency-key-header.)
const onceHeader = "Idempotency-Key"

// replayedHeader marks the first answer when it is given again.
const replayedHeader = "Idempotency-Replayed"

// takesOnce says which operations heed the header: those behind a POST with a
// key. Uploads are repeatable by themselves, and their bodies are not kept.
func takesOnce(method string, op model.Operation) bool {
	return method == http.MethodPost && op.Scope != "" && op.Action != model.ActionObjectUpload
}

// once claims the request's Idempotency-Key, if it has one. It reports whether
// the request was answered, by the answer to the first one.
func (x *exchange) once() (answered bool, err error) {
	values := x.r.Header[onceHeader]
	if len(values) == 0 || !takesOnce(x.r.Method, x.call.Operation) {
		return false, nil
	}
	if len(values) > 1 {
		return false, model.Invalid(onceHeader, "is given twice")
	}
	if err := model.ValidateIdempotencyKey(values[0]); err != nil {
		return false, err
	}
	content, err := x.content()
	if err != nil {
		return false, err
	}
	data, err := x.gate.engine.BeginOnce(x.call, values[0], x.r.Method+" "+x.r.URL.Path, content)
	if err != nil || data == nil {
		return false, err
	}
	x.call.Note("replayed", "true")
	x.w.Header().Set(replayedHeader, "true")
	x.SetStatus(http.StatusOK)
	return true, writeJSON(x, Envelope[json.RawMessage, Meta]{Data: data, Meta: x.meta()})
}

// content is what two requests with the same key must share: the query and the
// body, which is put back.
func (x *exchange) content() ([]byte, error) {
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
