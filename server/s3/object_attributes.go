package s3

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// objectPart is a part of an object that was uploaded in parts. The checksums of its parts are not kept.
type objectPart struct {
	PartNumber int
	Size       int64
}

type objectParts struct {
	PartsCount           int
	PartNumberMarker     int
	NextPartNumberMarker int
	MaxParts             int
	IsTruncated          bool
	Parts                []objectPart `xml:"Part"`
}

type objectChecksum struct {
	checksums
	ChecksumType string
}

type objectAttributes struct {
	XMLName      xml.Name        `xml:"GetObjectAttributesResponse"`
	Xmlns        string          `xml:"xmlns,attr"`
	ETag         string          `xml:",omitempty"`
	Checksum     *objectChecksum `xml:",omitempty"`
	ObjectParts  *objectParts    `xml:",omitempty"`
	StorageClass string          `xml:",omitempty"`
	ObjectSize   *int64          `xml:",omitempty"`
}

const attributesHeader = "X-Amz-Object-Attributes"

func (q *request) getObjectAttributes() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	wanted, err := q.wantedAttributes()
	if err != nil {
		return err
	}
	if err := checkKey(q.key); err != nil {
		return err
	}
	version, err := q.version()
	if err != nil {
		return err
	}
	o, err := q.engine.Objects.VersionGet(q.Call, b.ID, q.key, version)
	if q.describeMarker(b, err) != nil { // whether it is named or not: S3 documents no other error here
		return fail("NoSuchKey", "The specified key does not exist.")
	}
	if err != nil {
		return err
	}
	answer := objectAttributes{Xmlns: namespace}
	for _, name := range wanted {
		switch name {
		case "ETag":
			answer.ETag = o.EntityTag() // without quotes, as in S3
		case "Checksum":
			if c := checksumOf(o.Object); c.Value != "" {
				answer.Checksum = &objectChecksum{checksumsOf(c.Algorithm, c.Value), checksumType(o.Object)}
			}
		case "ObjectParts":
			if answer.ObjectParts, err = q.objectParts(o.Object); err != nil {
				return err
			}
		case "StorageClass":
			answer.StorageClass = "STANDARD"
		case "ObjectSize":
			answer.ObjectSize = &o.SizeBytes
		}
	}
	q.describeVersion(b, o.Object)
	q.Header().Set("Last-Modified", o.LastModified.UTC().Format(http.TimeFormat))
	return writeXML(q.Exchange, answer)
}

// wantedAttributes reads which attributes of an object a request asks for. It may repeat its header.
func (q *request) wantedAttributes() ([]string, error) {
	var wanted []string
	for name := range strings.SplitSeq(strings.Join(q.Request.Header[attributesHeader], ","), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.Contains([]string{"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"}, name) {
			return nil, invalidArgument("x-amz-object-attributes", name, "Invalid attribute name specified.")
		}
		wanted = append(wanted, name)
	}
	if len(wanted) == 0 {
		return nil, fail("InvalidRequest", "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty")
	}
	return wanted, nil
}

// objectParts returns a page of the parts of an object, nil if it was not uploaded in parts.
func (q *request) objectParts(o model.Object) (*objectParts, error) {
	header := q.Request.Header
	most, err := number("x-amz-max-parts", header.Get("X-Amz-Max-Parts"), maxKeys)
	if err != nil {
		return nil, err
	}
	after, err := number("x-amz-part-number-marker", header.Get("X-Amz-Part-Number-Marker"), 0)
	if err != nil || o.Attributes == nil || o.Attributes.PartSizes == nil {
		return nil, err
	}
	sizes := o.Attributes.PartSizes
	page := &objectParts{PartsCount: len(sizes), PartNumberMarker: after, MaxParts: min(most, maxKeys)}
	for i := after; i < len(sizes); i++ {
		if len(page.Parts) == page.MaxParts {
			page.IsTruncated = most > 0 // a page of none would be followed by another
			break
		}
		page.Parts = append(page.Parts, objectPart{i + 1, sizes[i]})
		page.NextPartNumberMarker = i + 1
	}
	return page, nil
}
