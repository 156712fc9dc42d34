package s3

import (
	"encoding/xml"
	"net/http"
	"slices"

	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

// accessBlock is a public access block in XML.
type accessBlock struct {
	XMLName               xml.Name `xml:"PublicAccessBlockConfiguration"`
	Xmlns                 string   `xml:"xmlns,attr"`
	BlockPublicAcls       bool
	IgnorePublicAcls      bool
	BlockPublicPolicy     bool
	RestrictPublicBuckets bool
}

func (q *request) putAccessBlock() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	var in accessBlock
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some {
		return malformedXML()
	}
	return q.configure(b, "public access block", func(b *model.Bucket) error {
		b.Block(&model.PublicAccessBlock{
			BlockPublicACLs: in.BlockPublicAcls, IgnorePublicACLs: in.IgnorePublicAcls,
			BlockPublicPolicy: in.BlockPublicPolicy, RestrictPublicBuckets: in.RestrictPublicBuckets,
		})
		return nil
	})
}

func (q *request) getAccessBlock() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	block := b.PublicAccessBlock
	if block == nil {
		return fail("NoSuchPublicAccessBlockConfiguration", "The public access block configuration was not found")
	}
	return writeXML(q.Exchange, accessBlock{xml.Name{}, namespace, block.BlockPublicACLs, block.IgnorePublicACLs, block.BlockPublicPolicy, block.RestrictPublicBuckets})
}

func (q *request) deleteAccessBlock() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	err = q.configure(b, "public access block", func(b *model.Bucket) error { b.Block(nil); return nil })
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

// ownership is who owns the objects of a bucket: always the organization.
type ownership struct {
	XMLName xml.Name `xml:"OwnershipControls"`
	Xmlns   string   `xml:"xmlns,attr"`
	Rules   []struct {
		ObjectOwnership string
	} `xml:"Rule"`
}

const ownerEnforced = "BucketOwnerEnforced"

func (q *request) putOwnership() error {
	if _, err := q.findBucket(); err != nil {
		return err
	}
	var in ownership
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some || len(in.Rules) != 1 || !slices.Contains([]string{ownerEnforced, "BucketOwnerPreferred", "ObjectWriter"}, in.Rules[0].ObjectOwnership) {
		return malformedXML()
	}
	if in.Rules[0].ObjectOwnership != ownerEnforced {
		return notImplemented("ObjectOwnership", "There are no ACLs, so it can only be BucketOwnerEnforced")
	}
	return nil
}

func (q *request) getOwnership() error {
	if _, err := q.findBucket(); err != nil {
		return err
	}
	answer := ownership{Xmlns: namespace}
	answer.Rules = append(answer.Rules, struct{ ObjectOwnership string }{ownerEnforced})
	return writeXML(q.Exchange, answer)
}
