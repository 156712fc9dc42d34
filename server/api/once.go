package api

import (
	"encoding/json"
	"net/http"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// takesOnce says which operations take an Idempotency-Key: every POST with a
// key.
func takesOnce(method string, op model.Operation) bool {
	return method == http.MethodPost && op.Scope != ""
}

// repeated is the answer to a request that was answered before. A handler returns
// it as an error, because it is not of the handler's type.
type repeated struct {
	wire.Envelope[json.RawMessage, wire.Meta]
}

// GetStatus implements huma.StatusError.
func (*repeated) GetStatus() int { return http.StatusOK }

// Error implements error.
func (*repeated) Error() string { return "answered before" }

// content is what two requests with the same key must share: the query and the
// body. Of a body that is streamed it is what is known before that, but for the
// Content-Type, which may name another boundary each time.
func (f *form) content(x *gate.Exchange) ([]byte, error) {
	shared := []byte(x.Request.URL.RawQuery + "\n")
	if f.json {
		body, err := x.ReadBody()
		return append(shared, body...), err
	}
	for _, name := range []string{"If-None-Match", "X-Checksum-Sha256", "X-Checksum-Crc32c"} {
		shared = append(shared, x.Request.Header.Get(name)+"\n"...)
	}
	return shared, nil
}
