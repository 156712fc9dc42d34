package s3

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"io"
	"strconv"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// partUpload returns a part without its body.
func (q *request) partUpload() (in objects.PartUpload, err error) {
	b, err := q.findBucket()
	if err != nil {
		return in, err
	}
	number, err := strconv.Atoi(q.query.Get("partNumber"))
	if err != nil || number < 1 || number > objects.MaxParts {
		return in, invalidArgument("partNumber", q.query.Get("partNumber"), "Part number must be an integer between 1 and %d, inclusive.", objects.MaxParts)
	}
	return objects.PartUpload{Bucket: b.ID, Key: q.key, Multipart: q.query.Get("uploadId"), Number: number}, nil
}

func (q *request) uploadPart() error {
	in, err := q.partUpload()
	if err != nil {
		return err
	}
	body, err := q.payload(true, sigv4.OfPayload)
	if err != nil {
		return err
	}
	in.Body, in.Length = body, body.Length
	sent := body.Algorithm()
	m, err := q.partAlgorithm(in, sent)
	if err != nil {
		return err
	}
	algorithm := algorithmOf(m)
	body.Compute(algorithm)
	in.Describe = func(p *model.MultipartPart) {
		p.MD5 = body.MD5()
		if c := body.Checksum(); c.Algorithm == algorithm {
			p.Checksum = c.Value
		}
	}
	p, err := q.engine.Objects.MultipartPut(q.Request.Context(), q.Call, in)
	if err != nil {
		return err
	}
	q.Header().Set("Etag", quoted(p.MD5))
	if c := body.Checksum(); sent != "" || m.Attributes.ChecksumAlgorithm != "" {
		q.Header().Set(sigv4.HeaderOf(c.Algorithm), c.Value)
	}
	return nil
}

// algorithmOf returns the algorithm of the checksum that the object of an upload will have.
func algorithmOf(m model.Multipart) string {
	return cmp.Or(m.Attributes.ChecksumAlgorithm, sigv4.DefaultAlgorithm)
}

// partAlgorithm refuses a part whose checksum is of another kind than its upload's.
func (q *request) partAlgorithm(in objects.PartUpload, algorithm string) (model.Multipart, error) {
	m, err := q.engine.Objects.MultipartGet(q.Call, in.Bucket, in.Key, in.Multipart)
	if err != nil {
		return m, err
	}
	wanted := m.Attributes.ChecksumAlgorithm
	if wanted != "" && algorithm != wanted && (algorithm != "" || !m.FullChecksum) {
		return m, fail("InvalidRequest", "Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s",
			wanted, cmp.Or(algorithm, "null"))
	}
	return m, nil
}

func (q *request) copyPart() error {
	in, err := q.partUpload()
	if err != nil {
		return err
	}
	source, err := q.copySource()
	if err != nil {
		return err
	}
	defer source.Content.Close()
	if in.Body, in.Length, err = q.copyRange(source); err != nil {
		return err
	}
	m, err := q.engine.Objects.MultipartGet(q.Call, in.Bucket, in.Key, in.Multipart)
	if err != nil {
		return err
	}
	digest, sum := md5.New(), sigv4.NewHash(algorithmOf(m))
	in.Body = io.TeeReader(in.Body, io.MultiWriter(digest, sum))
	in.Describe = func(p *model.MultipartPart) {
		p.MD5 = hex.EncodeToString(digest.Sum(nil))
		p.Checksum = base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	p, err := q.engine.Objects.MultipartPut(q.Request.Context(), q.Call, in)
	if err != nil {
		return err
	}
	return writeXML(q.Exchange, copyResult{XMLName: xml.Name{Local: "CopyPartResult"}, Xmlns: namespace, LastModified: timestamp(p.At), ETag: quoted(p.MD5), checksums: checksumsOf(m.Attributes.ChecksumAlgorithm, p.Checksum)})
}
