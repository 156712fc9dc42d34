package s3

import (
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

type completion struct {
	XMLName xml.Name   `xml:"CompleteMultipartUpload"`
	Parts   namedParts `xml:"Part"`
}

// maxCompletionTags is the maximum number of tags in a completion: objects.MaxParts with each of their fields fit.
const maxCompletionTags = 170_000

type namedPart struct {
	PartNumber *int
	ETag       *string
	checksums
}

// namedParts are as many parts as an upload can have.
type namedParts []namedPart

// UnmarshalXML implements xml.Unmarshaler. It is called for each part, and ends the decoding with the first one too many.
func (p *namedParts) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	if len(*p) == objects.MaxParts {
		return malformedXML()
	}
	var next namedPart
	if err := d.DecodeElement(&next, &start); err != nil {
		return err
	}
	*p = append(*p, next)
	return nil
}

// patience is how long a completion may take before the response begins. From then on, spaces keep the client waiting,
// and an error is in the body of a successful response, as S3 has it.
const patience = 10 * time.Second

func (q *request) completeMultipart() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	in := objects.Completion{Bucket: b.ID, Key: q.key, Multipart: q.query.Get("uploadId")}
	m, missing := q.engine.Objects.MultipartGet(q.Call, b.ID, q.key, in.Multipart)
	var parts completion
	if missing != nil { // it may be complete: then only its id counts
		if some, err := q.readDocument(maxXML, sigv4.OfObject, func([]byte) error { return nil }); err != nil {
			return err
		} else if !some {
			return malformedXML()
		}
	} else if _, err := q.readLooseXML(&parts, maxCompletionTags, sigv4.OfObject); err != nil {
		return err
	} else if len(parts.Parts) == 0 {
		return malformedXML()
	}
	if in.IfAbsent, in.IfMatch, err = q.writeConditions(); err != nil {
		return err
	}
	if in.Size, err = q.wholeSize(); err != nil {
		return err
	}
	if missing == nil {
		if in.Whole, err = q.whole(m); err != nil {
			return err
		}
		if in.Parts, err = completedParts(m, parts); err != nil {
			return err
		}
	}
	o, err := q.whileWaiting(func() (model.Object, error) {
		return q.engine.Objects.MultipartComplete(q.Request.Context(), q.Call, in)
	})
	if model.CodeOf(err) == model.CodeNotFound && in.IfMatch != "" && in.Parts != nil { // the upload exists
		return fail("NoSuchKey", "The specified key does not exist.")
	}
	if err != nil {
		return q.conditionError(objects.Upload{IfAbsent: in.IfAbsent, IfMatch: in.IfMatch}, err)
	}
	q.describeNewVersion(o)
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
		Xmlns: namespace, Location: q.location(), Bucket: q.bucket, Key: q.key, ETag: quoted(o.EntityTag()),
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

// location returns the URL of the request's object.
func (q *request) location() string {
	scheme := "http"
	if q.Request.TLS != nil {
		scheme = "https"
	}
	path := q.Request.URL.Path
	if q.form != nil { // it is about the bucket
		path = strings.TrimSuffix(path, "/") + "/" + q.key
	}
	return (&url.URL{Scheme: scheme, Host: q.Request.Host, Path: path}).String()
}

// whole returns what computes and checks the checksum of a joined object.
func (q *request) whole(m model.Multipart) (func([]model.MultipartPart) (string, io.Writer, func() (string, error)), error) {
	algorithm := algorithmOf(m)
	want, err := q.wholeChecksum(m)
	if err != nil {
		return nil, err
	}
	check := func(got string) (string, error) {
		if sum, _, _ := strings.Cut(got, "-"); want != "" && want != got && want != sum {
			return "", fail("BadDigest", "The %s you specified did not match the calculated checksum.", algorithm)
		}
		return got, nil
	}
	return func(parts []model.MultipartPart) (string, io.Writer, func() (string, error)) {
		sum, known := "", true
		if m.FullChecksum || m.Attributes.ChecksumAlgorithm == "" {
			sum, known = joinedChecksum(algorithm, parts)
		} else {
			sum = compositeChecksum(algorithm, parts)
		}
		if known {
			return algorithm, nil, func() (string, error) { return check(sum) }
		}
		digest := sigv4.NewHash(algorithm)
		return algorithm, digest, func() (string, error) { return check(base64.StdEncoding.EncodeToString(digest.Sum(nil))) }
	}, nil
}
