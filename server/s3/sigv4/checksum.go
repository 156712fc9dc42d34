package sigv4

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"slices"
	"strings"
)

// Checksum is a checksum of S3: its algorithm, and its value in base64.
type Checksum struct{ Algorithm, Value string }

// checksumPrefix begins the names of the headers with checksums.
const checksumPrefix = "x-amz-checksum-"

// Algorithms returns the names of the supported checksum algorithms.
func Algorithms() []string { return []string{"CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"} }

// HeaderOf returns the name of the header with the checksum of an algorithm.
func HeaderOf(algorithm string) string { return checksumPrefix + strings.ToLower(algorithm) }

// nvme is the polynomial of CRC-64/NVME, reversed.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// NewHash returns the hash of an algorithm, nil if it is not supported.
func NewHash(algorithm string) hash.Hash {
	switch algorithm {
	case "CRC32":
		return crc32.NewIEEE()
	case "CRC32C":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	case "CRC64NVME":
		return crc64.New(nvme)
	case "SHA1":
		return sha1.New()
	case "SHA256":
		return sha256.New()
	}
	return nil
}

// expected is what a client says of the payload's checksums.
type expected struct {
	md5       string // in base64, "" for none
	algorithm string // "" for none
	value     string // in base64; "" if the trailer has it
}

// expectedOf reads the headers of a request.
func expectedOf(h http.Header) (e expected, err error) {
	if e.md5 = h.Get("Content-Md5"); e.md5 != "" && !isBase64(e.md5, md5.Size) {
		return e, refuse("InvalidDigest", "The Content-MD5 you specified is not valid.")
	}
	for _, algorithm := range Algorithms() {
		value, given := h.Get(HeaderOf(algorithm)), len(h.Values(HeaderOf(algorithm))) > 0
		switch {
		case !given:
			continue
		case e.algorithm != "":
			return e, refuse("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
		case !isBase64(value, NewHash(algorithm).Size()):
			return e, refuse("InvalidRequest", "Value for %s header is invalid.", HeaderOf(algorithm))
		}
		e.algorithm, e.value = algorithm, value
	}
	if err := refuseUnknown(h); err != nil {
		return e, err
	}
	if err := e.addTrailer(h); err != nil {
		return e, err
	}
	named := strings.ToUpper(h.Get("X-Amz-Sdk-Checksum-Algorithm"))
	if named != "" && NewHash(named) == nil {
		return e, refuse("InvalidRequest", "The checksum algorithm you specified is not supported; the algorithms are %s", strings.Join(Algorithms(), ", "))
	}
	if named != "" && e.algorithm != "" && named != e.algorithm {
		return e, refuse("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid: it is not the algorithm of the checksum.")
	}
	return e, nil
}

// refuseUnknown refuses a checksum that would not be verified.
func refuseUnknown(h http.Header) error {
	for name := range h {
		kind, ok := strings.CutPrefix(strings.ToLower(name), checksumPrefix)
		if ok && NewHash(strings.ToUpper(kind)) == nil && !slices.Contains([]string{"algorithm", "mode", "type"}, kind) {
			return refuse("NotImplemented", "The checksum algorithm %s is not implemented; the algorithms are %s", kind, strings.Join(Algorithms(), ", "))
		}
	}
	return nil
}

// addTrailer reads which checksum the trailer will have.
func (e *expected) addTrailer(h http.Header) error {
	name := strings.ToLower(strings.TrimSpace(h.Get("X-Amz-Trailer")))
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(Algorithms(), func(a string) bool { return HeaderOf(a) == name })
	if i < 0 {
		return refuse("InvalidRequest", "The value specified in the x-amz-trailer header is not supported")
	}
	if e.algorithm != "" {
		return refuse("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
	}
	e.algorithm = Algorithms()[i]
	return nil
}

func isBase64(text string, size int) bool {
	raw, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(raw) == size
}
