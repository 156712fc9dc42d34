package sigv4

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/minio/crc64nvme"
	"github.com/zeebo/xxh3"
)

// Checksum is a checksum of S3: its algorithm, and its value in base64.
type Checksum struct{ Algorithm, Value string }

// checksumPrefix begins the names of the headers with checksums.
const checksumPrefix = "x-amz-checksum-"

// Algorithms returns the names of the supported checksum algorithms.
func Algorithms() []string {
	return []string{"CRC32", "CRC32C", "CRC64NVME", "MD5", "SHA1", "SHA256", "SHA512", "XXHASH128", "XXHASH3", "XXHASH64"}
}

// HeaderOf returns the name of the header with the checksum of an algorithm.
func HeaderOf(algorithm string) string { return checksumPrefix + strings.ToLower(algorithm) }

// DefaultAlgorithm is the algorithm of the checksum of an object for which the client sends none.
const DefaultAlgorithm = "CRC64NVME"

// NewHash returns the hash of an algorithm, nil if it is not supported.
func NewHash(algorithm string) hash.Hash {
	switch algorithm {
	case "CRC32":
		return crc32.NewIEEE()
	case "CRC32C":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	case "CRC64NVME":
		return crc64nvme.New()
	case "MD5":
		return md5.New()
	case "SHA1":
		return sha1.New()
	case "SHA256":
		return sha256.New()
	case "SHA512":
		return sha512.New()
	case "XXHASH128":
		return wide{xxh3.New128()}
	case "XXHASH3":
		return xxh3.New()
	case "XXHASH64":
		return xxhash.New()
	}
	return nil
}

// wide is a hash of 128 bits.
type wide struct{ *xxh3.Hasher128 }

// Size implements hash.Hash.
func (wide) Size() int { return 16 }

// Sum implements hash.Hash.
func (w wide) Sum(b []byte) []byte {
	sum := w.Sum128().Bytes()
	return append(b, sum[:]...)
}

// expected is what a client says of the payload's checksums.
type expected struct {
	md5       string // in base64, "" for none
	algorithm string // "" for none
	value     string // in base64; "" if the trailer has it
}

// expectedOf reads the headers of a request.
func expectedOf(h http.Header) (e expected, err error) {
	if digests := h["Content-Md5"]; len(digests) > 0 {
		if e.md5 = digests[0]; !isBase64(e.md5, md5.Size) {
			return e, refuse("InvalidDigest", "The Content-Md5 you specified is not valid.").with("Content-MD5", e.md5)
		}
	}
	if err := refuseUnknown(h); err != nil {
		return e, err
	}
	for _, algorithm := range Algorithms() {
		if values := h.Values(HeaderOf(algorithm)); len(values) > 0 {
			if e.algorithm != "" {
				return e, severalChecksums()
			}
			e.algorithm, e.value = algorithm, values[0]
		}
	}
	given := e.algorithm != ""
	if err := e.addTrailer(h); err != nil {
		return e, err
	}
	if given && !isBase64(e.value, NewHash(e.algorithm).Size()) {
		return e, refuse("InvalidRequest", "Value for %s header is invalid.", HeaderOf(e.algorithm))
	}
	return e, e.checkNamed(strings.ToUpper(h.Get("X-Amz-Sdk-Checksum-Algorithm")))
}

func severalChecksums() error {
	return refuse("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
}

// checkNamed compares the checksum with what x-amz-sdk-checksum-algorithm names.
func (e *expected) checkNamed(algorithm string) error {
	switch {
	case algorithm == "":
		return nil
	case NewHash(algorithm) == nil, e.algorithm != "" && algorithm != e.algorithm:
		return refuse("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid.")
	case e.algorithm == "":
		return refuse("InvalidRequest", "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.")
	}
	return nil
}

// refuseUnknown refuses a checksum that would not be verified.
func refuseUnknown(h http.Header) error {
	for name := range h {
		kind, ok := strings.CutPrefix(strings.ToLower(name), checksumPrefix)
		if ok && NewHash(strings.ToUpper(kind)) == nil && !slices.Contains([]string{"algorithm", "mode", "type"}, kind) {
			return refuse("InvalidRequest", "The algorithm type you specified in x-amz-checksum- header is invalid.")
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
		return severalChecksums()
	}
	e.algorithm = Algorithms()[i]
	return nil
}

func isBase64(text string, size int) bool {
	raw, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(raw) == size
}
