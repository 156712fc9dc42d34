package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// takesIdempotencyKey reports whether an operation accepts an Idempotency-Key: every POST that needs a key does.
func takesIdempotencyKey(method string, op model.Operation) bool {
	return method == http.MethodPost && op.Scope != ""
}

// repeated is the repeated response to an earlier request. A handler returns it as an error, because it does not
// have the handler's type.
type repeated struct {
	wire.Envelope[json.RawMessage, wire.Meta]
}

// GetStatus implements huma.StatusError.
func (*repeated) GetStatus() int { return http.StatusOK }

// Error implements error.
func (*repeated) Error() string { return "answered before" }

// content returns what two requests with the same key must share: the query and the body. For a streamed body it is
// what is known in advance, except the Content-Type, whose boundary may change each time.
func (f *form) content(x *gate.Exchange) ([]byte, error) {
	shared := []byte(x.Request.URL.RawQuery + "\n")
	if f.json {
		body, err := x.ReadBody()
		if condition := x.Request.Header.Get("If-None-Match"); condition != "" {
			shared = append(shared, condition+"\n"...)
		}
		return append(shared, body...), err
	}
	for _, name := range []string{"If-None-Match", "X-Checksum-Sha256", "X-Checksum-Crc32c", "X-Object-Tags", "Cache-Control", "Content-Disposition"} {
		shared = append(shared, x.Request.Header.Get(name)+"\n"...)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Request.Header)) {
		if strings.HasPrefix(name, metadataHeader) {
			shared = append(shared, name+": "+strings.Join(x.Request.Header[name], ",")+"\n"...)
		}
	}
	return shared, nil
}
