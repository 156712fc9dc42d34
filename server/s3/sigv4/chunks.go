package sigv4

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"
)

const (
	// maxLine is the longest line between chunks, in bytes.
	maxLine = 4 << 10
	// minChunk is the smallest size of a chunk other than the last, in bytes.
	minChunk = 8 << 10
	// maxSkipped is the maximum size of a chunk that is read although it goes beyond the announced length, in bytes.
	maxSkipped = 1 << 20
	// maxTrailers is the maximum number of trailing headers.
	maxTrailers = 8
	// emptyHash is the SHA-256 of nothing.
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// chunks decodes a payload that is sent in chunks (aws-chunked). It verifies the signature of each chunk and of the
// trailer, each of which covers the one before it.
type chunks struct {
	request *Request
	in      *bufio.Reader
	signed  bool
	trails  bool   // there is a trailer
	last    string // the signature before the current chunk's
	want    int64  // the size of the payload that the client announced
	total   int64  // the size of the chunks so far
	left    int64  // bytes of the current chunk
	open    bool   // the current chunk has not ended
	small   bool   // it must be the last but for the empty one
	chunk   string // its signature
	digest  hash.Hash
	ended   bool
	trailer map[string]string // after the end
}

func (q *Request) newChunks(source io.Reader, length int64) *chunks {
	return &chunks{
		request: q, want: length, in: bufio.NewReaderSize(source, maxLine), signed: q.payload != unsignedTrailer,
		trails: q.payload != signedChunks, last: q.signature, digest: sha256.New(), trailer: map[string]string{},
	}
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	for c.left == 0 {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.signed {
		c.digest.Write(p[:n])
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, cutOff(err)
}

// cutOff returns the error for a body that ends early.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse("IncompleteBody", "The request body terminated unexpectedly")
	}
	return err
}

// next ends the current chunk, if any, and begins the next one, or ends the payload.
func (c *chunks) next() error {
	if c.open {
		if err := c.expectLine(); err != nil {
			return err
		}
		if err := c.endChunk(); err != nil {
			return err
		}
	}
	if err := c.beginChunk(); err != nil {
		return err
	}
	if c.left > 0 {
		return nil
	}
	if err := c.endChunk(); err != nil {
		return err
	}
	if c.total != c.want {
		return wrongLength()
	}
	if err := c.readTrailer(); err != nil {
		return err
	}
	c.ended = true
	return c.expectEnd()
}

// expectEnd refuses a body with more. minio-go ends unsigned trailers with two empty lines.
func (c *chunks) expectEnd() error {
	const emptyLine = "\r\n"
	rest, err := c.in.Peek(len(emptyLine) + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case len(rest) == 0, string(rest) == emptyLine && c.trails && !c.signed:
		_, err = c.in.Discard(len(rest))
		return err
	}
	return badChunk()
}

// badChunk refuses a body that is not well-formed, with the error that S3 has for it.
func badChunk() error {
	return refuse("IncompleteBody", "The request body terminated unexpectedly")
}

// refuseLonger refuses a chunk that goes beyond the announced length. None of its bytes counts. S3 has another error where
// its end is not where its head says, so a short one is read to there.
func (c *chunks) refuseLonger(size int64) error {
	if size <= maxSkipped {
		if _, err := io.CopyN(io.Discard, c.in, size); err != nil {
			return cutOff(err)
		}
		if err := c.expectLine(); err != nil {
			return err
		}
	}
	return wrongLength()
}

// beginChunk reads the head of a chunk: SIZE, or SIZE;chunk-signature=SIGNATURE.
func (c *chunks) beginChunk() error {
	line, err := c.strictLine()
	if err != nil {
		return err
	}
	text, signature, signed := strings.Cut(line, ";chunk-signature=")
	size, err := strconv.ParseUint(text, 16, 62)
	if err != nil || signed != c.signed || signed && !isHash(signature) || strings.HasPrefix(text, "+") {
		return badChunk()
	}
	if size > 0 && c.small {
		return refuse("InvalidChunkSizeError", "Only the last chunk is allowed to have a size less than %d bytes", minChunk)
	}
	if c.total += int64(size); c.total > c.want {
		return c.refuseLonger(int64(size))
	}
	c.small = size < minChunk
	c.left, c.open, c.chunk = int64(size), true, signature
	c.digest.Reset()
	return nil
}

// endChunk verifies the signature of a chunk that was read.
func (c *chunks) endChunk() error {
	c.open = false
	if !c.signed {
		return nil
	}
	return c.verify(algorithm+"-PAYLOAD", emptyHash+"\n"+hex.EncodeToString(c.digest.Sum(nil)), c.chunk)
}

// verify checks the next signature of the chain.
func (c *chunks) verify(kind, hashes, signature string) error {
	q := c.request
	text := strings.Join([]string{kind, q.at.Format(timeFormat), q.scope(), c.last, hashes}, "\n")
	if !sameHash(q.sign(text), signature) {
		return refuse("SignatureDoesNotMatch", "The signature of a chunk does not match: the body was changed on its way")
	}
	c.last = signature
	return nil
}

const trailerSignature = "x-amz-trailer-signature"

// readTrailer reads what follows the last chunk, up to an empty line.
func (c *chunks) readTrailer() error {
	var canonical strings.Builder
	signature := ""
	for range maxTrailers {
		line, err := c.line()
		if err != nil {
			return err
		}
		if line == "" && c.signed && c.trails && signature == "" {
			continue // minio-go sends an empty line before the signature
		}
		if line == "" {
			return c.endTrailer(canonical.String(), signature)
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case c.signed && len(c.trailer) > 0 && (signature != "" || name != trailerSignature || !isHash(value)):
			return badChunk() // nothing but a signature follows the trailer
		case !ok || !c.trails || len(c.trailer) > 0 && !c.signed || signature != "":
			return badTrailer()
		case name == trailerSignature:
			signature = value
			continue
		}
		if !strings.EqualFold(name, c.request.http.Header.Get("X-Amz-Trailer")) {
			return badTrailer()
		}
		c.trailer[name] = value
		canonical.WriteString(name + ":" + value + "\n")
	}
	return badTrailer()
}

func badTrailer() error {
	return refuse("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
}

func (c *chunks) endTrailer(canonical, signature string) error {
	if !c.signed || !c.trails {
		if signature != "" {
			return badTrailer()
		}
		return nil
	}
	if !isHash(signature) || canonical == "" {
		return badTrailer()
	}
	return c.verify(algorithm+"-TRAILER", hashOf(canonical), signature)
}

// line reads a line that ends with CRLF or, as minio-go's trailers do, with LF. The last line of signed ones may be missing.
func (c *chunks) line() (string, error) {
	text, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", badChunk()
	case errors.Is(err, io.EOF) && len(text) == 0 && c.left == 0 && !c.open && c.trails && c.signed:
		return "", nil // some clients end a trailer without an empty line
	case err != nil:
		return "", cutOff(err)
	}
	line := strings.TrimSuffix(string(text[:len(text)-1]), "\r")
	if strings.Contains(line, "\r") {
		return "", badChunk()
	}
	return line, nil
}

// expectLine reads the end of a chunk's bytes.
func (c *chunks) expectLine() error {
	line, err := c.strictLine()
	if err == nil && line != "" {
		err = badChunk()
	}
	return err
}

// strictLine reads a line that ends with CRLF.
func (c *chunks) strictLine() (string, error) {
	text, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", badChunk()
	}
	if err != nil {
		return "", cutOff(err)
	}
	line, ok := strings.CutSuffix(string(text), "\r\n")
	if !ok {
		return "", badChunk()
	}
	return line, nil
}
