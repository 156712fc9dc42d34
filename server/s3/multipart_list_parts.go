package s3

import "encoding/xml"

type listedPart struct {
	PartNumber   int
	LastModified string
	ETag         string
	Size         int64
	checksums
}

func (q *request) listParts() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	limit, err := q.limit("max-parts")
	if err != nil {
		return err
	}
	after, err := number("part-number-marker", q.query.Get("part-number-marker"), 0)
	if err != nil {
		return err
	}
	m, parts, err := q.engine.Objects.MultipartParts(q.Call, b.ID, q.key, q.query.Get("uploadId"))
	if err != nil {
		return err
	}
	answer := struct {
		XMLName              xml.Name `xml:"ListPartsResult"`
		Xmlns                string   `xml:"xmlns,attr"`
		Bucket               string
		Key                  string
		UploadID             string `xml:"UploadId"`
		Initiator            *owner
		Owner                *owner
		StorageClass         string
		PartNumberMarker     int
		NextPartNumberMarker int
		MaxParts             int
		IsTruncated          bool
		ChecksumAlgorithm    string       `xml:",omitempty"`
		ChecksumType         string       `xml:",omitempty"`
		Parts                []listedPart `xml:"Part"`
	}{
		Xmlns: namespace, Bucket: q.bucket, Key: q.key, UploadID: m.ID, Initiator: q.owner(), Owner: q.owner(), StorageClass: "STANDARD",
		PartNumberMarker: after, MaxParts: limit, ChecksumAlgorithm: m.Attributes.ChecksumAlgorithm,
	}
	if answer.ChecksumAlgorithm != "" {
		answer.ChecksumType = multipartType(m)
	}
	for _, p := range parts {
		if p.Number <= after {
			continue
		}
		if len(answer.Parts) == limit {
			answer.IsTruncated = true
			break
		}
		answer.NextPartNumberMarker = p.Number
		answer.Parts = append(answer.Parts, listedPart{p.Number, timestamp(p.At), quoted(p.MD5), p.SizeBytes, checksumsOf(answer.ChecksumAlgorithm, p.Checksum)})
	}
	return writeXML(q.Exchange, answer)
}
