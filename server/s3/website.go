package s3

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/content"
	"holdfast/server/gate"
)

// websiteOf returns the bucket whose website has a host, "" for none.
func (s *Server) websiteOf(host string) string {
	bucket, ok := strings.CutSuffix(hostName(host), "."+s.sites)
	if s.sites == "" || !ok {
		return ""
	}
	return bucket
}

// website serves a page to everybody.
func (s *Server) website(q *request) http.Handler {
	return s.pages.Handler(model.Operation{Action: model.ActionObjectDownload}, func(x *gate.Exchange) error {
		q.Exchange, q.query = x, nil // a query is the page's own
		if q.method != http.MethodGet && q.method != http.MethodHead {
			x.Header().Set("Allow", "GET, HEAD")
			return q.notAllowed(object)
		}
		b, err := q.engine.Objects.BucketWebsite(x.Call, q.bucket)
		if err != nil {
			return err
		}
		q.allowOrigin(b)
		return q.sendPage(b)
	})
}

// sendPage answers a request for a page: with a redirect, the object, or what the website has for errors.
func (q *request) sendPage(b model.Bucket) error {
	site, key := *b.Website, q.key
	if site.RedirectAll != nil {
		return q.redirect(*site.RedirectAll, key, "")
	}
	if rule := site.RuleFor(key, 0); rule != nil {
		return q.redirect(rule.Redirect, key, rule.Prefix)
	}
	if key == "" || strings.HasSuffix(key, "/") {
		key += site.Index
	}
	q.page = http.StatusOK
	err := q.sendDocument(b, key)
	if err == nil {
		return nil
	}
	status := statusOf(codeOf(err, model.ResourceObject))
	if status == http.StatusNotFound && !strings.HasSuffix(q.key, "/") && q.key != "" {
		if _, missing := q.engine.Objects.ObjectDownloadHead(q.Call, b.ID, q.key+"/"+site.Index, ""); missing == nil {
			return q.redirect(model.WebsiteRedirect{Status: http.StatusFound}, q.key+"/", "")
		}
	}
	if rule := site.RuleFor(q.key, status); rule != nil {
		return q.redirect(rule.Redirect, q.key, rule.Prefix)
	}
	if q.page = status; site.Error != "" && status < http.StatusInternalServerError && q.sendDocument(b, site.Error) == nil {
		return nil
	}
	return err
}

// sendDocument serves an object of a website, or follows the redirect that stands in it.
func (q *request) sendDocument(b model.Bucket, key string) error {
	if !b.PublicRights().Reads(key) {
		return fail("AccessDenied", "Access Denied.")
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return q.sendPublic(b, key)
}

// sendPublic serves a public object.
func (q *request) sendPublic(b model.Bucket, key string) error {
	r := q.Request
	if r.Method == http.MethodHead {
		o, err := q.engine.Objects.ObjectDownloadHead(q.Call, b.ID, key, "")
		if err != nil {
			return err
		}
		return q.sendOrRedirect(o.Object, content.OfSize(o.SizeBytes))
	}
	object, err := q.engine.Objects.ObjectDownload(r.Context(), q.Call, b.ID, key, "")
	if err != nil {
		return err
	}
	defer object.Content.Close()
	if err = q.sendOrRedirect(object.Object, object.Content); errors.Is(err, errStored) {
		return q.engine.Objects.Unreadable(object.Object, err)
	}
	return err
}

// sendOrRedirect serves an object. On a website it redirects where the object says so.
func (q *request) sendOrRedirect(o model.Object, stored content.Stored) error {
	if q.page == 0 || o.Attributes == nil || o.Attributes.WebsiteRedirect == "" {
		return q.send(o, stored)
	}
	to := o.Attributes.WebsiteRedirect
	if strings.HasPrefix(to, "/") {
		to = q.origin().String() + to
	}
	q.Header().Set("Location", to)
	q.WriteHeader(http.StatusMovedPermanently)
	return nil
}

// origin returns the URL of the website that a request is for, without a path.
func (q *request) origin() *url.URL { return &url.URL{Scheme: q.websites, Host: q.Request.Host} }

// redirect sends the client to another URL. prefix is that of the rule that says so.
func (q *request) redirect(r model.WebsiteRedirect, key, prefix string) error {
	to := q.origin()
	to.Scheme, to.Host = cmp.Or(r.Protocol, to.Scheme), cmp.Or(r.Host, to.Host)
	to.Path, to.RawQuery = "/"+r.To(key, prefix), q.Request.URL.RawQuery
	q.Header().Set("Location", to.String())
	q.WriteHeader(cmp.Or(r.Status, http.StatusMovedPermanently))
	return nil
}

// writePage writes the response to an error that a website has no page for.
func writePage(x *gate.Exchange, public *model.Error) {
	code := codeOf(x.Err(), x.Call.Resource.Type)
	status, message := statusOf(code), messageOf(code, public.Message)
	if public.IsInternal() {
		status = http.StatusInternalServerError
	}
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	x.Header().Del("WWW-Authenticate")
	x.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.WriteHeader(status)
	if x.Request.Method == http.MethodHead {
		return
	}
	_, _ = fmt.Fprintf(x, "<!doctype html>\n<title>%s</title>\n<h1>%s</h1>\n<p>%s</p>\n<p>%s</p>\n",
		title, title, html.EscapeString(message), html.EscapeString(x.Call.RequestID)) // the client may have gone
}
