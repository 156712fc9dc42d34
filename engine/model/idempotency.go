package model

import "time"

// MaxIdempotencyKey is the longest Idempotency-Key, in bytes.
const MaxIdempotencyKey = 255

// ValidateIdempotencyKey checks what a client sent as Idempotency-Key.
func ValidateIdempotencyKey(key string) error {
	if key == "" || len(key) > MaxIdempotencyKey {
		return Invalid("Idempotency-Key", "must have 1 to %d characters", MaxIdempotencyKey)
	}
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return Invalid("Idempotency-Key", "must have printable ASCII characters only")
		}
	}
	return nil
}

// Repeatable says which requests are the same one, to be carried out once.
type Repeatable struct {
	Key   string // the Idempotency-Key
	Route string // method and path
	// Content is what repetitions must share: the query and the body. Of an upload,
	// whose body is streamed, it is all but the body.
	Content []byte
	// Fingerprint is a keyed hash of Content and a body that was streamed, once
	// that is known; nil where Content is all.
	Fingerprint []byte
}

// IdempotentRequest is a request that was sent with an Idempotency-Key, and
// how far it came.
type IdempotentRequest struct {
	ID string `json:"id"`
	// Hash is of the API key, the route and the Idempotency-Key.
	Hash   []byte `json:"hash"`
	APIKey string `json:"api_key"`
	// Fingerprint is a keyed hash of the request's query and body; nil as long as
	// the body is being streamed.
	Fingerprint []byte    `json:"fingerprint"`
	CreatedAt   time.Time `json:"created_at"`
	// Done is what was changed, once it is; it is set in the transaction of the
	// change. Nil as long as nothing was.
	Done *Resource `json:"done"`
	// Answer is the first answer's data, sealed; nil as long as there is none.
	Answer []byte `json:"answer"`
}
