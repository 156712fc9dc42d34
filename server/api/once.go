package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"holdfast/engine/core"
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

// replay answers with the first answer.
func replay(ctx context.Context, first *core.FirstAnswer) *repeated {
	gate.Replay(ctx)
	return &repeated{wire.Envelope[json.RawMessage, wire.Meta]{Data: first.Data, Meta: metaOf(gate.CallOf(ctx))}}
}

// keep keeps what is answered to a request with an Idempotency-Key.
func keep(ctx context.Context, data any) error {
	return gate.Keep(ctx, func() ([]byte, error) {
		var text bytes.Buffer
		err := encodeJSON(&text, data)
		return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
	})
}

// content is what two requests with the same key must share: the query and the
// body.
func (l bodyLimits) content(r *http.Request) ([]byte, error) {
	body, err := l.read(r)
	return append([]byte(r.URL.RawQuery+"\n"), body...), err
}

// uploadContent is content of an upload, as far as it is known before the body is
// streamed, but for the Content-Type, which may name another boundary each time.
func uploadContent(r *http.Request) ([]byte, error) {
	return []byte(strings.Join([]string{
		r.URL.RawQuery, r.Header.Get("If-None-Match"), r.Header.Get("X-Checksum-Sha256"), r.Header.Get("X-Checksum-Crc32c"), "",
	}, "\n")), nil
}
