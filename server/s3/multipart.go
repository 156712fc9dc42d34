package s3

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	if in.ContentType, in.Attributes, err = attributesOf(q.Request.Header); err != nil {
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
	kind := q.Request.Header.Get("X-Amz-Checksum-Type")
	if algorithm == "" {
		if kind != "" {
			return fail("InvalidRequest", "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
		}
		return nil
	}
	if sigv4.NewHash(algorithm) == nil {
		return fail("InvalidRequest", "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [%s]", strings.Join(sigv4.Algorithms(), ", "))
	}
	crc := strings.HasPrefix(algorithm, "CRC")
	if kind == "" {
		kind = composite
		if algorithm == "CRC64NVME" {
			kind = fullObject
		}
	}
	if kind != composite && kind != fullObject {
		return fail("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
	}
	if kind == fullObject && !crc || kind == composite && algorithm == "CRC64NVME" {
		return fail("InvalidRequest", "The %s checksum type cannot be used with the %s checksum algorithm.", kind, strings.ToLower(algorithm))
	}
	in.Attributes.ChecksumAlgorithm, in.FullChecksum = algorithm, kind == fullObject
	return nil
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

// partUpload returns a part without its body.
func (q *request) partUpload() (in objects.PartUpload, err error) {
	b, err := q.findBucket()
	if err != nil {
		return in, err
	}
	number, err := strconv.Atoi(q.query.Get("partNumber"))
	if err != nil || number < 1 || number > objects.MaxParts {
		return in, fail("InvalidArgument", "Part number must be an integer between 1 and %d, inclusive", objects.MaxParts)
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
	m, err := q.partAlgorithm(in, body.Algorithm())
	if err != nil {
		return err
	}
	in.Describe = func(p *model.MultipartPart) {
		if p.MD5 = body.MD5(); m.Attributes.ChecksumAlgorithm != "" {
			p.Checksum = body.Checksum().Value
		}
	}
	p, err := q.engine.Objects.MultipartPut(q.Request.Context(), q.Call, in)
	if err != nil {
		return err
	}
	q.Header().Set("Etag", quoted(p.MD5))
	if c := body.Checksum(); c.Value != "" {
		q.Header().Set(sigv4.HeaderOf(c.Algorithm), c.Value)
	}
	return nil
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
			strings.ToLower(wanted), cmp.Or(strings.ToLower(algorithm), "null"))
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
	digests := []hash.Hash{md5.New()}
	if h := sigv4.NewHash(m.Attributes.ChecksumAlgorithm); h != nil {
		digests = append(digests, h)
	}
	for _, h := range digests {
		in.Body = io.TeeReader(in.Body, h)
	}
	in.Describe = func(p *model.MultipartPart) {
		p.MD5 = hex.EncodeToString(digests[0].Sum(nil))
		if len(digests) > 1 {
			p.Checksum = base64.StdEncoding.EncodeToString(digests[1].Sum(nil))
		}
	}
	p, err := q.engine.Objects.MultipartPut(q.Request.Context(), q.Call, in)
	if err != nil {
		return err
	}
	return writeXML(q.Exchange, copyResult{XMLName: xml.Name{Local: "CopyPartResult"}, Xmlns: namespace, LastModified: timestamp(p.At), ETag: quoted(p.MD5), checksums: checksumsOf(m.Attributes.ChecksumAlgorithm, p.Checksum)})
}

// checksums are the elements with checksums that XML documents have.
type checksums struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
}

// of returns the element of an algorithm, nil if there is none.
func (c *checksums) of(algorithm string) *string {
	switch algorithm {
	case "CRC32":
		return &c.ChecksumCRC32
	case "CRC32C":
		return &c.ChecksumCRC32C
	case "CRC64NVME":
		return &c.ChecksumCRC64NVME
	case "SHA1":
		return &c.ChecksumSHA1
	case "SHA256":
		return &c.ChecksumSHA256
	}
	return nil
}

// checksumsOf returns the elements for one checksum.
func checksumsOf(algorithm, value string) (c checksums) {
	if to := c.of(algorithm); to != nil {
		*to = value
	}
	return c
}

type completion struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Parts   []struct {
		PartNumber int
		ETag       string
		checksums
	} `xml:"Part"`
}

// patience is how long a completion may take before the response begins. From then on, spaces keep the client waiting,
// and an error is in the body of a successful response, as S3 has it.
const patience = 10 * time.Second

func (q *request) completeMultipart() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	var parts completion
	if some, err := q.readXML(&parts, sigv4.OfObject); err != nil {
		return err
	} else if !some || len(parts.Parts) == 0 {
		return malformedXML()
	}
	in := objects.Completion{Bucket: b.ID, Key: q.key, Multipart: q.query.Get("uploadId")}
	if in.IfAbsent, in.IfMatch, err = q.writeConditions(); err != nil {
		return err
	}
	algorithm := ""
	if m, err := q.engine.Objects.MultipartGet(q.Call, b.ID, q.key, in.Multipart); err == nil {
		algorithm = m.Attributes.ChecksumAlgorithm
		if algorithm != "" {
			in.Whole = whole(m, q.Request.Header)
		}
	}
	for _, p := range parts.Parts {
		named := objects.CompletedPart{Number: p.PartNumber, MD5: strings.Trim(p.ETag, `"`)}
		if sum := p.of(algorithm); sum != nil {
			named.Checksum = *sum
		}
		in.Parts = append(in.Parts, named)
	}
	o, err := q.whileWaiting(func() (model.Object, error) {
		return q.engine.Objects.MultipartComplete(q.Request.Context(), q.Call, in)
	})
	if err != nil {
		return q.conditionError(objects.Upload{IfAbsent: in.IfAbsent, IfMatch: in.IfMatch}, err)
	}
	sum := checksumOf(o)
	kind := ""
	if sum.Value != "" {
		kind = checksumType(o)
	}
	return writeXML(q.Exchange, struct {
		XMLName  xml.Name `xml:"CompleteMultipartUploadResult"`
		Xmlns    string   `xml:"xmlns,attr"`
		Location string
		Bucket   string
		Key      string
		ETag     string
		checksums
		ChecksumType string `xml:",omitempty"`
	}{
		Xmlns: namespace, Location: "/" + q.bucket + "/" + q.key, Bucket: q.bucket, Key: q.key, ETag: quoted(o.EntityTag()),
		checksums: checksumsOf(sum.Algorithm, sum.Value), ChecksumType: kind,
	})
}

// whileWaiting does work that may take long, and meanwhile keeps the client from giving up.
func (q *request) whileWaiting(work func() (model.Object, error)) (o model.Object, err error) {
	done := make(chan struct{})
	var cause any // of a panic, which the gate handles in its own goroutine
	var working sync.WaitGroup
	working.Go(func() {
		defer close(done)
		defer func() { cause = recover() }()
		o, err = work()
	})
	defer working.Wait()
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for {
		select {
		case <-done:
			if cause != nil {
				panic(cause)
			}
			return o, err
		case <-tick.C:
			q.Header().Set("Content-Type", "application/xml")
			_, _ = io.WriteString(q, q.prologue()+" ")
			_ = http.NewResponseController(q.Exchange).Flush()
		}
	}
}

// prologue returns the beginning of every document, once.
func (q *request) prologue() string {
	if q.begun {
		return ""
	}
	q.begun = true
	return xml.Header
}

// whole returns what computes and checks the checksum of a joined object.
func whole(m model.Multipart, h http.Header) func(io.Reader, []model.MultipartPart) (io.Reader, func() (string, error)) {
	algorithm := m.Attributes.ChecksumAlgorithm
	want := h.Get(sigv4.HeaderOf(algorithm))
	return func(content io.Reader, parts []model.MultipartPart) (io.Reader, func() (string, error)) {
		digest := sigv4.NewHash(algorithm)
		if m.FullChecksum {
			content = io.TeeReader(content, digest)
		}
		return content, func() (string, error) {
			suffix := ""
			if !m.FullChecksum {
				for _, p := range parts {
					raw, _ := base64.StdEncoding.DecodeString(p.Checksum) // verified when it arrived
					digest.Write(raw)
				}
				suffix = fmt.Sprintf("-%d", len(parts))
			}
			got := base64.StdEncoding.EncodeToString(digest.Sum(nil)) + suffix
			if want != "" && want != got && want+suffix != got {
				return "", fail("BadDigest", "The %s you specified did not match the calculated checksum.", algorithm)
			}
			return got, nil
		}
	}
}

func (q *request) abortMultipart() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := q.engine.Objects.MultipartAbort(q.Call, b.ID, q.key, q.query.Get("uploadId")); err != nil {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}

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
	after := 0
	if text := q.query.Get("part-number-marker"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return fail("InvalidArgument", "Argument part-number-marker must be an integer between 0 and 2147483647")
		}
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

type listedUpload struct {
	Key               string
	UploadID          string `xml:"UploadId"`
	Initiator         *owner
	Owner             *owner
	StorageClass      string
	Initiated         string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

func (q *request) listUploads() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	limit, err := q.limit("max-uploads")
	if err != nil {
		return err
	}
	encode, err := q.encoding()
	if err != nil {
		return err
	}
	all, err := q.engine.Objects.MultipartList(q.Call, b.ID)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b model.Multipart) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID)) })
	prefix, delimiter := q.query.Get("prefix"), q.query.Get("delimiter")
	keyMarker, idMarker := q.query.Get("key-marker"), q.query.Get("upload-id-marker")
	answer := struct {
		XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
		Xmlns              string   `xml:"xmlns,attr"`
		Bucket             string
		KeyMarker          string
		UploadIDMarker     string `xml:"UploadIdMarker"`
		NextKeyMarker      string
		NextUploadIDMarker string `xml:"NextUploadIdMarker"`
		Prefix             string
		Delimiter          string `xml:",omitempty"`
		EncodingType       string `xml:",omitempty"`
		MaxUploads         int
		IsTruncated        bool
		Uploads            []listedUpload `xml:"Upload"`
		CommonPrefixes     []commonPrefix
	}{
		Xmlns: namespace, Bucket: q.bucket, KeyMarker: encode(keyMarker), UploadIDMarker: idMarker, Prefix: encode(prefix), Delimiter: encode(delimiter),
		EncodingType: q.query.Get("encoding-type"), MaxUploads: limit,
	}
	last := ""
	for _, m := range all {
		if !strings.HasPrefix(m.Key, prefix) || m.Key < keyMarker || m.Key == keyMarker && (idMarker == "" || m.ID <= idMarker) {
			continue
		}
		folder := ""
		if rest := m.Key[len(prefix):]; delimiter != "" && strings.Contains(rest, delimiter) {
			folder = prefix + rest[:strings.Index(rest, delimiter)+len(delimiter)]
			if folder == last || folder == keyMarker {
				continue
			}
		}
		if len(answer.Uploads)+len(answer.CommonPrefixes) == limit {
			answer.IsTruncated = limit > 0
			break
		}
		if folder != "" {
			last = folder
			answer.CommonPrefixes = append(answer.CommonPrefixes, commonPrefix{encode(folder)})
			answer.NextKeyMarker, answer.NextUploadIDMarker = encode(folder), ""
			continue
		}
		answer.NextKeyMarker, answer.NextUploadIDMarker = encode(m.Key), m.ID
		entry := listedUpload{Key: encode(m.Key), UploadID: m.ID, Initiator: q.owner(), Owner: q.owner(), StorageClass: "STANDARD", Initiated: timestamp(m.CreatedAt)}
		if algorithm := m.Attributes.ChecksumAlgorithm; algorithm != "" {
			entry.ChecksumAlgorithm, entry.ChecksumType = algorithm, multipartType(m)
		}
		answer.Uploads = append(answer.Uploads, entry)
	}
	if !answer.IsTruncated {
		answer.NextKeyMarker, answer.NextUploadIDMarker = "", ""
	}
	return writeXML(q.Exchange, answer)
}
