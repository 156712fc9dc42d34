package s3

import (
	"encoding/xml"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

func (q *request) createMultipart() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := checkKey(q.key); err != nil {
		return err
	}
	in := objects.NewMultipart{Bucket: b.ID, Key: q.key}
	if in.ContentType, in.Attributes, err = attributesOf(q.Request.Header, q.key); err != nil {
		return err
	}
	if in.Lock, err = q.lockOf(); err != nil {
		return err
	}
	if in.Tags, err = tagsOf(q.Request.Header); err != nil {
		return err
	}
	if err := q.multipartChecksum(&in); err != nil {
		return err
	}
	m, err := q.engine.Objects.MultipartCreate(q.Call, in)
	if err != nil {
		return err
	}
	q.describeMultipart(m)
	return writeXML(q.Exchange, struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		Xmlns    string   `xml:"xmlns,attr"`
		Bucket   string
		Key      string
		UploadID string `xml:"UploadId"`
	}{Xmlns: namespace, Bucket: q.bucket, Key: q.key, UploadID: m.ID})
}

// multipartChecksum reads which checksum the object will have.
func (q *request) multipartChecksum(in *objects.NewMultipart) error {
	algorithm := strings.ToUpper(q.Request.Header.Get("X-Amz-Checksum-Algorithm"))
	kind := strings.ToUpper(q.Request.Header.Get("X-Amz-Checksum-Type"))
	if kind != "" && kind != composite && kind != fullObject {
		return fail("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
	}
	if algorithm == "" {
		if kind != "" {
			return fail("InvalidRequest", "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
		}
		return nil
	}
	if sigv4.NewHash(algorithm) == nil {
		return unknownAlgorithm()
	}
	crc := strings.HasPrefix(algorithm, "CRC")
	if kind == "" {
		kind = composite
		if algorithm == "CRC64NVME" {
			kind = fullObject
		}
	}
	if kind == fullObject && !crc || kind == composite && algorithm == "CRC64NVME" {
		return fail("InvalidRequest", "The %s checksum type cannot be used with the %s checksum algorithm.", kind, strings.ToLower(algorithm))
	}
	in.Attributes.ChecksumAlgorithm, in.FullChecksum = algorithm, kind == fullObject
	return nil
}

func unknownAlgorithm() error {
	return fail("InvalidRequest", "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [%s]", strings.Join(sigv4.Algorithms(), ", "))
}

func (q *request) describeMultipart(m model.Multipart) {
	if algorithm := m.Attributes.ChecksumAlgorithm; algorithm != "" {
		q.Header().Set("X-Amz-Checksum-Algorithm", algorithm)
		q.Header().Set("X-Amz-Checksum-Type", multipartType(m))
	}
}

func multipartType(m model.Multipart) string {
	if m.FullChecksum {
		return fullObject
	}
	return composite
}
