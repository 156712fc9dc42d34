package s3

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

// corsRule is a rule in XML.
type corsRule struct {
	ID            string   `xml:",omitempty"`
	AllowedOrigin []string `xml:",omitempty"`
	AllowedMethod []string `xml:",omitempty"`
	AllowedHeader []string `xml:",omitempty"`
	ExposeHeader  []string `xml:",omitempty"`
	MaxAgeSeconds *int32   `xml:",omitempty"`
}

type corsDocument struct {
	XMLName xml.Name   `xml:"CORSConfiguration"`
	Xmlns   string     `xml:"xmlns,attr"`
	Rules   []corsRule `xml:"CORSRule"`
}

func (q *request) putCORS() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	var in corsDocument
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some || len(in.Rules) == 0 || len(in.Rules) > model.MaxCORSRules {
		return malformedXML()
	}
	var rules []model.CORSRule
	for _, r := range in.Rules {
		if err := r.validate(); err != nil {
			return err
		}
		rules = append(rules, model.CORSRule{ID: r.ID, Origins: r.AllowedOrigin, Methods: r.AllowedMethod, Headers: r.AllowedHeader, Expose: r.ExposeHeader, MaxAgeSeconds: r.MaxAgeSeconds})
	}
	if stored, err := json.Marshal(rules); err != nil {
		return err
	} else if len(stored) > model.MaxCORSBytes {
		return fail("InvalidRequest", "The rules take %d bytes, and may take %d.", len(stored), model.MaxCORSBytes)
	}
	return q.configure(b, "cors", func(b *model.Bucket) error { b.CORS = rules; return nil })
}

// configure changes a setting of a bucket that only S3 clients have.
func (q *request) configure(b model.Bucket, what string, change func(*model.Bucket) error) error {
	return q.engine.Objects.BucketConfigure(q.Call, b.ID, what, change)
}

func (r corsRule) validate() error {
	if len(r.AllowedOrigin) == 0 || len(r.AllowedMethod) == 0 {
		return malformedXML()
	}
	for _, origin := range r.AllowedOrigin {
		if strings.Count(origin, "*") > 1 {
			return fail("InvalidRequest", "AllowedOrigin %q can not have more than one wildcard.", origin)
		}
	}
	for _, method := range r.AllowedMethod {
		if !model.IsCORSMethod(method) {
			return fail("InvalidRequest", "Found unsupported HTTP method in CORS config. Unsupported method is %s", method)
		}
	}
	for _, header := range slices.Concat(r.AllowedHeader, r.ExposeHeader) {
		if header != "" && !model.IsHeaderName(header) {
			return fail("InvalidRequest", `AllowedHeader "%s" contains invalid character.`, header)
		}
	}
	return nil
}

func (q *request) getCORS() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if len(b.CORS) == 0 {
		return fail("NoSuchCORSConfiguration", "The CORS configuration does not exist")
	}
	answer := corsDocument{Xmlns: namespace}
	for _, r := range b.CORS {
		answer.Rules = append(answer.Rules, corsRule{r.ID, r.Origins, r.Methods, r.Headers, r.Expose, r.MaxAgeSeconds})
	}
	return writeXML(q.Exchange, answer)
}

func (q *request) deleteCORS() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := q.configure(b, "cors", func(b *model.Bucket) error { b.CORS = nil; return nil }); err != nil {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}
