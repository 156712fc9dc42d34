package api

import (
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// newWebsite returns how a bucket is served as a website, nil if it is none.
func (h *handlers) newWebsite(b model.Bucket) *wire.Website {
	if b.Website == nil {
		return nil
	}
	view := &wire.Website{
		URL: orAbsent(h.engine.Objects.WebsiteURL(b)), IndexDocument: orAbsent(b.Website.Index), ErrorDocument: orAbsent(b.Website.Error),
		Rules: convert(b.Website.Rules, newWebsiteRule),
	}
	if all := b.Website.RedirectAll; all != nil {
		view.RedirectHost, view.RedirectProtocol = orAbsent(all.Host), orAbsent(wire.WebsiteProtocol(all.Protocol))
	}
	return view
}

func newWebsiteRule(r model.WebsiteRule) wire.WebsiteRule {
	to := r.Redirect
	return wire.WebsiteRule{
		KeyPrefix: orAbsent(r.Prefix), ErrorStatus: orAbsent(r.Status), RedirectHost: orAbsent(to.Host),
		RedirectProtocol: orAbsent(wire.WebsiteProtocol(to.Protocol)), RedirectStatus: orAbsent(to.Status),
		ReplaceKey: to.Key, ReplaceKeyPrefix: to.Prefix,
	}
}

// storedWebsite is the inverse of newWebsite.
func storedWebsite(in wire.SetWebsite) *model.Website {
	site := &model.Website{Index: text(in.IndexDocument), Error: text(in.ErrorDocument), Rules: convert(in.Rules, storedWebsiteRule)}
	if in.RedirectHost != nil || in.RedirectProtocol != nil {
		site.RedirectAll = &model.WebsiteRedirect{Host: text(in.RedirectHost), Protocol: string(text(in.RedirectProtocol))}
	}
	return site
}

func storedWebsiteRule(r wire.SetWebsiteRule) model.WebsiteRule {
	return model.WebsiteRule{Prefix: text(r.KeyPrefix), Status: whole(r.ErrorStatus), Redirect: model.WebsiteRedirect{
		Host: text(r.RedirectHost), Protocol: string(text(r.RedirectProtocol)), Status: whole(r.RedirectStatus),
		Key: r.ReplaceKey, Prefix: r.ReplaceKeyPrefix,
	}}
}
