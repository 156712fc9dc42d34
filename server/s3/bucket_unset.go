package s3

import "encoding/xml"

// unset returns the handler that answers that a bucket does not have a setting, with an error of S3.
func unset(code, message string) handler {
	return func(q *request) error {
		if _, err := q.findBucket(); err != nil {
			return err
		}
		return fail(code, "%s", message)
	}
}

// empty returns the handler that answers that a bucket does not have a setting, with an empty document.
func empty(document string) handler {
	return func(q *request) error {
		if _, err := q.findBucket(); err != nil {
			return err
		}
		return writeXML(q.Exchange, struct {
			XMLName xml.Name
			Xmlns   string `xml:"xmlns,attr"`
		}{xml.Name{Local: document}, namespace})
	}
}

// requestPayment answers that the owner of a bucket pays.
func (q *request) requestPayment() error {
	if _, err := q.findBucket(); err != nil {
		return err
	}
	return writeXML(q.Exchange, struct {
		XMLName xml.Name `xml:"RequestPaymentConfiguration"`
		Xmlns   string   `xml:"xmlns,attr"`
		Payer   string
	}{Xmlns: namespace, Payer: "BucketOwner"})
}
