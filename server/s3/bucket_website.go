package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

// websiteDocument is the configuration of a website in XML.
type websiteDocument struct {
	XMLName               xml.Name `xml:"WebsiteConfiguration"`
	Xmlns                 string   `xml:"xmlns,attr"`
	RedirectAllRequestsTo *struct {
		HostName string
		Protocol string `xml:",omitempty"`
	}
	IndexDocument *struct{ Suffix string }
	ErrorDocument *struct{ Key string }
	RoutingRules  *routingRules
}

type routingRules struct{ RoutingRule []routingRule }

// routingRule is a rule of a website in XML.
type routingRule struct {
	Condition *routingCondition
	Redirect  routingRedirect
}

type routingCondition struct {
	HTTPErrorCodeReturnedEquals string `xml:"HttpErrorCodeReturnedEquals,omitempty"`
	KeyPrefixEquals             string `xml:",omitempty"`
}

type routingRedirect struct {
	HostName             string  `xml:",omitempty"`
	HTTPRedirectCode     string  `xml:"HttpRedirectCode,omitempty"`
	Protocol             string  `xml:",omitempty"`
	ReplaceKeyPrefixWith *string `xml:",omitempty"`
	ReplaceKeyWith       *string `xml:",omitempty"`
}

// putWebsite makes a bucket a website. Where websites are not served, it refuses, for nobody would see it.
func (q *request) putWebsite() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if q.websites == "" {
		return fail("NotImplemented", "No websites are served here: the operator can start holdfast with --s3-website-url.")
	}
	if q.Request.ContentLength > model.MaxWebsiteBytes {
		return fail("MaxMessageLengthExceeded", "Your request was too big.").with("MaxMessageLengthBytes", strconv.Itoa(model.MaxWebsiteBytes))
	}
	var in websiteDocument
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some {
		return malformedXML()
	}
	site, err := in.website()
	if err != nil {
		return err
	}
	return q.configure(b, "website", func(b *model.Bucket) error { b.Website = site; return nil })
}

// website returns what a document says.
func (d websiteDocument) website() (*model.Website, error) {
	var rules []routingRule
	if d.RoutingRules != nil {
		rules = d.RoutingRules.RoutingRule
	}
	if all := d.RedirectAllRequestsTo; all != nil {
		if all.HostName == "" || d.IndexDocument != nil || d.ErrorDocument != nil || len(rules) > 0 {
			return nil, malformedXML()
		}
		return &model.Website{RedirectAll: &model.WebsiteRedirect{Host: all.HostName, Protocol: all.Protocol}}, checkTarget(all.HostName, all.Protocol)
	}
	if d.IndexDocument == nil {
		return nil, malformedXML()
	}
	site := &model.Website{Index: d.IndexDocument.Suffix}
	if !model.IsIndexDocument(site.Index) {
		return nil, invalidArgument("IndexDocument", site.Index, "The IndexDocument Suffix is not well formed")
	}
	if d.ErrorDocument != nil {
		if site.Error = d.ErrorDocument.Key; model.ValidateObjectKey("key", site.Error) != nil {
			return nil, invalidArgument("ErrorDocument", site.Error, "The ErrorDocument Key is not well formed")
		}
	}
	if len(rules) > model.MaxWebsiteRules {
		return nil, fail("InvalidRequest", "%d routing rules provided, the number of routing rules in a website configuration is limited to %d.", len(rules), model.MaxWebsiteRules)
	}
	for _, r := range rules {
		rule, err := r.rule()
		if err != nil {
			return nil, err
		}
		site.Rules = append(site.Rules, rule)
	}
	return site, nil
}

// rule returns what a rule of a document says.
func (r routingRule) rule() (to model.WebsiteRule, err error) {
	if c := r.Condition; c != nil {
		if *c == (routingCondition{}) {
			return to, malformedXML()
		}
		to.Prefix = c.KeyPrefixEquals
		to.Status, err = statusIn(c.HTTPErrorCodeReturnedEquals, "The provided HTTP error code (%d) is not valid. Valid codes are 4XX or 5XX.", model.IsErrorStatus)
		if err != nil {
			return to, err
		}
	}
	in := r.Redirect
	if in == (routingRedirect{}) {
		return to, malformedXML()
	}
	if in.ReplaceKeyWith != nil && in.ReplaceKeyPrefixWith != nil {
		return to, fail("InvalidRequest", "You can only define ReplaceKeyPrefix or ReplaceKey but not both.")
	}
	to.Redirect = model.WebsiteRedirect{Host: in.HostName, Protocol: in.Protocol, Key: in.ReplaceKeyWith, Prefix: in.ReplaceKeyPrefixWith}
	to.Redirect.Status, err = statusIn(in.HTTPRedirectCode, "The provided HTTP redirect code (%d) is not valid. Valid codes are 3XX except 300.", model.IsRedirectStatus)
	if err != nil {
		return to, err
	}
	return to, checkTarget(in.HostName, in.Protocol)
}

// statusIn reads a status of HTTP, 0 for none.
func statusIn(text, refusal string, valid func(int) bool) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, malformedXML()
	}
	if !valid(n) {
		return 0, fail("InvalidRequest", refusal, n)
	}
	return n, nil
}

// checkTarget refuses a host and a protocol that cannot be in the URL of a redirect.
func checkTarget(host, protocol string) error {
	if protocol != "" && !model.IsWebsiteProtocol(protocol) {
		return fail("InvalidRequest", "Invalid protocol, protocol can be http or https. If not defined the protocol will be selected automatically.")
	}
	if !model.IsWebsiteHost(host) {
		return fail("InvalidRequest", "Invalid host name: %s", host)
	}
	return nil
}

func (q *request) getWebsite() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if b.Website == nil {
		return fail("NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration").with("BucketName", b.Name)
	}
	return writeXML(q.Exchange, documentOf(*b.Website))
}

// documentOf is the inverse of websiteDocument.website.
func documentOf(site model.Website) (d websiteDocument) {
	d.Xmlns = namespace
	if all := site.RedirectAll; all != nil {
		d.RedirectAllRequestsTo = &struct {
			HostName string
			Protocol string `xml:",omitempty"`
		}{all.Host, all.Protocol}
		return d
	}
	d.IndexDocument = &struct{ Suffix string }{site.Index}
	if site.Error != "" {
		d.ErrorDocument = &struct{ Key string }{site.Error}
	}
	for _, r := range site.Rules {
		rule := routingRule{Redirect: routingRedirect{
			HostName: r.Redirect.Host, HTTPRedirectCode: statusText(r.Redirect.Status), Protocol: r.Redirect.Protocol,
			ReplaceKeyPrefixWith: r.Redirect.Prefix, ReplaceKeyWith: r.Redirect.Key,
		}}
		if r.Prefix != "" || r.Status != 0 {
			rule.Condition = &routingCondition{statusText(r.Status), r.Prefix}
		}
		if d.RoutingRules == nil {
			d.RoutingRules = &routingRules{}
		}
		d.RoutingRules.RoutingRule = append(d.RoutingRules.RoutingRule, rule)
	}
	return d
}

func statusText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (q *request) deleteWebsite() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	err = q.configure(b, "website", func(b *model.Bucket) error { b.Website = nil; return nil })
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}
