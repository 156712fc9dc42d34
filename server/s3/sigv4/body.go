package sigv4

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"slices"
	"strconv"
)

// Body is the payload of a request. It is verified as it is read.
type Body struct {
	// Length is the number of bytes of the payload, -1 if the client does not say.
	Length int64

	source  io.Reader
	chunks  *chunks // the source if the payload is sent in chunks, or nil
	want    expected
	payload string // the hash that the payload must have, "" if none is signed
	md5     hash.Hash
	sha256  hash.Hash // nil unless payload is set
	sum     hash.Hash // nil unless a checksum is expected
	read    int64
	value   string // the checksum, after the end
	// computed means that the client has sent no checksum, but one is wanted.
	computed bool
	err      error // what Read returns from now on
}

// Of says what the checksums in the headers of a request are of.
type Of int

const (
	// OfPayload means the payload.
	OfPayload Of = iota
	// OfObject means an object that the payload only names.
	OfObject
)

// Body returns the payload of the verified request, whose body is source. It computes the MD5 with digest, which may be
// nil; then it does so only if the client has sent one.
func (q *Request) Body(source io.Reader, digest hash.Hash, of Of) (*Body, error) {
	want := expected{}
	if of == OfPayload {
		var err error
		if want, err = expectedOf(q.http.Header); err != nil {
			return nil, err
		}
	}
	var err error
	b := &Body{Length: q.http.ContentLength, source: source, want: want}
	switch {
	case q.payload == unsignedPayload:
	case q.IsStreamed():
		if b.Length, err = decodedLength(q.http.Header.Get("X-Amz-Decoded-Content-Length")); err != nil {
			return nil, err
		}
		b.chunks = q.newChunks(source, b.Length)
		b.source = b.chunks
	default:
		b.payload, b.sha256 = q.payload, sha256.New()
	}
	trailer := q.http.Header.Get("X-Amz-Trailer") != ""
	if q.payload == signedTrailer && !trailer {
		return nil, badTrailer()
	}
	if trailer && q.payload != signedTrailer && q.payload != unsignedTrailer {
		return nil, refuse("InvalidRequest", "x-amz-trailer needs a payload with a trailer")
	}
	if b.md5 = digest; digest == nil && want.md5 != "" {
		b.md5 = md5.New()
	}
	if want.algorithm != "" {
		b.sum = NewHash(want.algorithm)
	}
	return b, nil
}

// IsStreamed reports whether the payload is sent in chunks.
func (q *Request) IsStreamed() bool {
	return slices.Contains([]string{signedChunks, signedTrailer, unsignedTrailer}, q.payload)
}

func wrongLength() error {
	return refuse("IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header")
}

func decodedLength(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse("MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	return n, nil
}

// Read implements io.Reader. It returns io.EOF only if the payload is verified.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.source.Read(p)
	b.read += int64(n)
	for _, h := range []hash.Hash{b.md5, b.sha256, b.sum} {
		if h != nil {
			h.Write(p[:n])
		}
	}
	if err == io.EOF {
		if bad := b.verify(); bad != nil {
			err = bad
		}
	}
	b.err = err
	return n, err
}

// verify checks the payload after its end.
func (b *Body) verify() error {
	if b.Length >= 0 && b.read != b.Length {
		return wrongLength()
	}
	if b.sha256 != nil {
		if got := hex.EncodeToString(b.sha256.Sum(nil)); !sameHash(got, b.payload) {
			return refuse("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.").
				with("ClientComputedContentSHA256", b.payload).with("S3ComputedContentSHA256", got)
		}
	}
	if err := b.verifyMD5(); err != nil {
		return err
	}
	return b.verifySum()
}

func (b *Body) verifyMD5() error {
	if b.want.md5 == "" {
		return nil
	}
	got := base64.StdEncoding.EncodeToString(b.md5.Sum(nil))
	if got == b.want.md5 {
		return nil
	}
	want, _ := base64.StdEncoding.DecodeString(b.want.md5) // checked by expectedOf
	return refuse("BadDigest", "The Content-MD5 you specified did not match what we received.").
		with("CalculatedDigest", got).with("ExpectedDigest", hex.EncodeToString(want))
}

func (b *Body) verifySum() error {
	if b.sum == nil {
		return nil
	}
	want := b.want.value
	if b.computed {
		b.value = base64.StdEncoding.EncodeToString(b.sum.Sum(nil))
		return nil
	}
	if want == "" {
		want = b.chunks.trailer[HeaderOf(b.want.algorithm)]
		if want == "" {
			return refuse("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
		}
		if !isBase64(want, b.sum.Size()) {
			return refuse("InvalidRequest", "Value for %s trailing header is invalid.", HeaderOf(b.want.algorithm))
		}
	}
	b.value = base64.StdEncoding.EncodeToString(b.sum.Sum(nil))
	if b.value != want {
		return refuse("BadDigest", "The %s you specified did not match the calculated checksum.", b.want.algorithm)
	}
	return nil
}

// MD5 returns the MD5 of the payload in hexadecimal. It is valid after io.EOF.
func (b *Body) MD5() string { return hex.EncodeToString(b.md5.Sum(nil)) }

// Compute computes a checksum if the client sends none.
func (b *Body) Compute(algorithm string) {
	if b.want.algorithm == "" && algorithm != "" {
		b.want.algorithm, b.sum, b.computed = algorithm, NewHash(algorithm), true
	}
}

// Checksum returns the checksum that was verified or computed, zero if there is none. It is valid after io.EOF.
func (b *Body) Checksum() Checksum { return Checksum{b.want.algorithm, b.value} }

// Algorithm returns the algorithm of the checksum that the client sends, "" for none.
func (b *Body) Algorithm() string { return b.want.algorithm }
