package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"sync"
	"time"

	"holdfast/server/s3/sigv4"
)

// maxXML is the maximum size of an XML body in bytes: the names of 1000 long keys fit.
const maxXML = 4 << 20

// maxXMLTags is the maximum number of tags in an XML body, and of attributes: 1000 keys to delete with each of their fields
// fit. An element takes far more memory decoded than its tag takes in the body.
const maxXMLTags = 20_000

// Of documents of more than largeXML bytes, at most largeXMLs of an organization are received at the same time, and at most
// largeXMLs of all are decoded.
const (
	largeXML  = 64 << 10
	largeXMLs = 4
)

// documentTimeout is how long a document may take to arrive: others of the organization may wait for it.
const documentTimeout = time.Minute

// documents bounds the memory that large documents take.
type documents struct {
	decoded chan struct{} // holds an entry for each that is being decoded

	mu       sync.Mutex
	received map[string]chan struct{} // holds, by organization, an entry for each that is being received or decoded
}

func newDocuments() documents {
	return documents{decoded: make(chan struct{}, largeXMLs), received: map[string]chan struct{}{}}
}

// of returns the slots of an organization.
func (d *documents) of(organization string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.received[organization] == nil {
		d.received[organization] = make(chan struct{}, largeXMLs)
	}
	return d.received[organization]
}

// takeSlot waits for a slot until ctx ends. The caller releases it.
func takeSlot(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readXML reads the body into a document, which has to have all its elements. It returns false if the body is empty.
func (q *request) readXML(document any, of sigv4.Of) (bool, error) {
	return q.readDocument(maxXML, of, func(text []byte) error {
		if err := decodeXML(text, document, maxXMLTags); err != nil {
			return err
		}
		return checkElements(text, document)
	})
}

// readLooseXML is readXML for a document of at most that many tags, whose unknown elements say nothing that matters.
func (q *request) readLooseXML(document any, tags int, of sigv4.Of) (bool, error) {
	return q.readDocument(maxXML, of, func(text []byte) error { return decodeXML(text, document, tags) })
}

// decodeXML decodes a document of at most that many tags and as many attributes.
func decodeXML(text []byte, document any, tags int) error {
	if bytes.Count(text, []byte("<")) > tags || mostAttributes(text) > tags || xml.Unmarshal(text, document) != nil {
		return malformedXML()
	}
	return nil
}

// mostAttributes returns how many attributes a document has at most: the value of each begins with a quote after an equals
// sign, with white space between them or without. Other quotes are of text, such as the key of an object.
func mostAttributes(text []byte) (n int) {
	var last byte
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"', '\'':
			if last == '=' {
				n++
			}
		}
		last = c
	}
	return n
}

// readDocument reads a body of at most that many bytes and decodes it. It returns false if the body is empty.
func (q *request) readDocument(most int64, of sigv4.Of, decode func(text []byte) error) (bool, error) {
	if size := q.Request.ContentLength; size < 0 || size > largeXML {
		release, err := takeSlot(q.Request.Context(), q.documents.of(q.Call.Organization))
		if err != nil {
			return false, err
		}
		defer release()
	}
	text, err := q.readAll(most, of)
	if err != nil || len(text) == 0 {
		return false, err
	}
	if len(text) > largeXML {
		release, err := takeSlot(q.Request.Context(), q.documents.decoded)
		if err != nil {
			return false, err
		}
		defer release()
	}
	return true, decode(text)
}

// readAll reads a body of at most that many bytes, and checks that the key was not revoked meanwhile.
func (q *request) readAll(most int64, of sigv4.Of) ([]byte, error) {
	if q.signature.IsStreamed() {
		return nil, fail("InvalidRequest", "The value of x-amz-content-sha256 header is invalid.")
	}
	body, err := q.payloadOf(q.WholeBody(documentTimeout), false, of)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fail("EntityTooLarge", "Your request was too big: it has more than %d bytes", most)
	}
	return text, q.engine.Core.CheckAuthority(q.Call)
}

func malformedXML() error {
	return fail("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema.")
}
