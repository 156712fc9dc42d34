package objects

import (
	"net/url"

	"holdfast/engine/model"
)

// WebsiteURL returns where a bucket is served as a website, "" if it is none or no websites are served.
func (s *Service) WebsiteURL(b model.Bucket) string {
	base, err := url.Parse(s.core.Config.WebsiteURL)
	if b.Website == nil || err != nil || base.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: base.Scheme, Host: b.Name + "." + base.Host, Path: "/"}).String()
}

// checkWebsite refuses a website that is not valid, and any where none are served, for nobody would see it.
func (s *Service) checkWebsite(site model.Website) error {
	if err := site.Validate("website"); err != nil {
		return err
	}
	if s.core.Config.WebsiteURL == "" {
		return model.Errorf(model.CodeForbidden, "no websites are served here: the operator can start the appliance with --s3-website-url")
	}
	return nil
}
