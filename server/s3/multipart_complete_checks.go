package s3

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// wholeSize returns the size that the joined object must have, -1 if the client does not say.
func (q *request) wholeSize() (int64, error) {
	text := q.Request.Header.Get("X-Amz-Mp-Object-Size")
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fail("InvalidRequest", "Value for x-amz-mp-object-size header is invalid: '%s'", text)
	}
	if n < 0 {
		return 0, fail("InvalidRequest", "Value for x-amz-mp-object-size header is less than zero: '%d'", n)
	}
	return n, nil
}

// wholeChecksum returns the checksum that the joined object must have, "" if the client does not say.
func (q *request) wholeChecksum(m model.Multipart) (string, error) {
	header := q.Request.Header
	given := slices.DeleteFunc(sigv4.Algorithms(), func(a string) bool { return header.Get(sigv4.HeaderOf(a)) == "" })
	if len(given) > 1 {
		return "", fail("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
	}
	kind := header.Get("X-Amz-Checksum-Type")
	if kind != "" && kind != composite && kind != fullObject {
		return "", fail("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
	}
	algorithm := m.Attributes.ChecksumAlgorithm
	if algorithm != "" && kind != "" && kind != multipartType(m) {
		return "", fail("InvalidRequest", "The upload was created using the %s checksum mode. The complete request must use the same checksum mode.", multipartType(m))
	}
	if algorithm == "" || len(given) == 0 {
		return "", nil
	}
	value := header.Get(sigv4.HeaderOf(given[0]))
	sum, count, of := strings.Cut(value, "-")
	n, err := strconv.Atoi(count)
	if !isChecksum(sum, given[0]) || of && (m.FullChecksum || err != nil || n < 1) {
		return "", fail("InvalidRequest", "Value for %s header is invalid.", sigv4.HeaderOf(given[0]))
	}
	if given[0] != algorithm {
		return "", fail("BadDigest", "The %s you specified did not match the calculated checksum.", strings.ToLower(given[0]))
	}
	return value, nil
}

func isChecksum(text, algorithm string) bool {
	raw, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(raw) == sigv4.NewHash(algorithm).Size()
}

// completedParts returns the parts that a request names, with their checksums.
func completedParts(m model.Multipart, in completion) (parts []objects.CompletedPart, err error) {
	for _, p := range in.Parts {
		if p.PartNumber == nil || p.ETag == nil {
			return nil, malformedXML()
		}
		if *p.PartNumber < 1 {
			return nil, invalidArgument("PartNumber", strconv.Itoa(*p.PartNumber), "PartNumber must be >= 1")
		}
		named := objects.CompletedPart{Number: *p.PartNumber, MD5: strings.Trim(*p.ETag, `"`)}
		if named.Checksum, err = p.named(m, named.Number); err != nil {
			return nil, err
		}
		parts = append(parts, named)
	}
	return parts, nil
}

// named returns the checksum of a part that a request names.
func (c checksums) named(m model.Multipart, number int) (string, error) {
	text, algorithm, value := "", "", ""
	for _, a := range sigv4.Algorithms() {
		if v := *c.of(a); v != "" {
			text, algorithm, value = text+a+":"+v+";", a, v
		}
	}
	wanted := m.Attributes.ChecksumAlgorithm
	switch {
	case wanted == "":
		return "", nil
	case algorithm == "" && m.FullChecksum:
		return "", nil
	case algorithm == "":
		return "", fail("InvalidRequest", "The upload was created using a %s checksum. The complete request must include the checksum for each part. It was missing for part %d in the request.", strings.ToLower(wanted), number)
	case text != algorithm+":"+value+";":
		return "", invalidArgument("Checksum", text, "Invalid Base64 or multiple checksums present in request")
	case !isChecksum(value, algorithm):
		return "", invalidArgument("Checksum", value, "Invalid Base64 or multiple checksums present in request")
	case algorithm != wanted:
		return "", fail("BadDigest", "The %s you specified for part %d did not match what we received.", strings.ToLower(algorithm), number)
	}
	return value, nil
}
