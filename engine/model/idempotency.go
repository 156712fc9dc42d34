package model

import "time"

// MaxIdempotencyKey is the longest Idempotency-Key, in bytes.
const MaxIdempotencyKey = 255

// ValidateIdempotencyKey checks the value of an Idempotency-Key header.
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

// Repeatable identifies the requests that count as one, to be carried out once.
type Repeatable struct {
	Key   string // the Idempotency-Key
	Route string // method and path
	// Content is what repetitions must share: the query and the body. For an upload,
	// whose body is streamed, it excludes the body.
	Content []byte
	// Fingerprint is a keyed hash of Content and a streamed body, once that is known;
	// nil if Content is everything.
	Fingerprint []byte
}

// IdempotentRequest is a request that was sent with an Idempotency-Key, and its
// progress.
type IdempotentRequest struct {
	ID string `json:"id"`
	// Hash covers the API key, the route and the Idempotency-Key.
	Hash   []byte `json:"hash"`
	APIKey string `json:"api_key"`
	// Fingerprint is a keyed hash of the request's query and body; nil while the body
	// is being streamed.
	Fingerprint []byte    `json:"fingerprint"`
	CreatedAt   time.Time `json:"created_at"`
	// Done is the changed resource. It is set in the transaction of the change and
	// nil before that.
	Done *Resource `json:"done"`
	// Answer is the data of the first response, sealed; nil until there is one.
	Answer []byte `json:"answer"`
}
