package web

import (
	"net/url"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// websiteForm is what the page of a bucket shows of its website.
type websiteForm struct {
	Served                 bool   // whether websites are served at all
	URL                    string // where this one is, "" if there is none
	Index, Error, Redirect string // as they are or were typed
	Rules                  int    // how many there are, which the form leaves as they are
}

func (req *request) websiteForm(b model.Bucket) websiteForm {
	form := websiteForm{Served: req.engine.Core.Config.WebsiteURL != "", URL: req.engine.Objects.WebsiteURL(b)}
	if site := b.Website; site != nil {
		form.Index, form.Error, form.Rules = site.Index, site.Error, len(site.Rules)
		if all := site.RedirectAll; all != nil {
			form.Redirect = (&url.URL{Scheme: all.Protocol, Host: all.Host}).String()
		}
	}
	if req.r.PostForm.Has("index_document") {
		form.Index, form.Error, form.Redirect = req.form("index_document"), req.form("error_document"), req.form("redirect")
	}
	return form
}

// bucketWebsite serves a bucket as a website, or no longer if the form is empty.
func (req *request) bucketWebsite() (answer, error) {
	b, err := req.engine.Objects.BucketGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	site := model.Website{Index: strings.TrimSpace(req.form("index_document")), Error: strings.TrimSpace(req.form("error_document"))}
	to := strings.TrimSpace(req.form("redirect"))
	if site.Index == "" && site.Error == "" && to == "" {
		return req.changeBucket(objects.BucketChange{NoWebsite: true})
	}
	if site.Index != "" && b.Website != nil {
		site.Rules = b.Website.Rules
	}
	if to != "" {
		protocol, host, both := strings.Cut(to, "://")
		if !both {
			protocol, host = "", to
		}
		site.RedirectAll = &model.WebsiteRedirect{Host: strings.TrimSuffix(host, "/"), Protocol: protocol}
	}
	return req.changeBucket(objects.BucketChange{Website: &site})
}
