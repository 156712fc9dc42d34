package wire

// Website says how a public bucket is served as a website.
type Website struct {
	URL              *string          `json:"url" doc:"Where it is served; null if no websites are served here any more."`
	IndexDocument    *string          `json:"index_document" doc:"What is added to a path that is empty or ends in a slash; null if every request is redirected."`
	ErrorDocument    *string          `json:"error_document" doc:"Key of the object that is the body of errors; null for none."`
	RedirectHost     *string          `json:"redirect_host" doc:"Where every request is redirected; null if they are not."`
	RedirectProtocol *WebsiteProtocol `json:"redirect_protocol" doc:"Null for that of the website."`
	Rules            []WebsiteRule    `json:"rules" doc:"Redirect some requests; the first that fits counts."`
}

// WebsiteRule redirects some of a website's requests.
type WebsiteRule struct {
	KeyPrefix        *string          `json:"key_prefix" doc:"What the keys begin with that it is about; null for any."`
	ErrorStatus      *int             `json:"error_status" doc:"The status of the error in whose place it redirects; null for whatever the status would be."`
	RedirectHost     *string          `json:"redirect_host" doc:"Null for that of the website."`
	RedirectProtocol *WebsiteProtocol `json:"redirect_protocol" doc:"Null for that of the website."`
	RedirectStatus   *int             `json:"redirect_status" doc:"Null for 301."`
	ReplaceKey       *string          `json:"replace_key" doc:"What takes the place of the key; null to keep it."`
	ReplaceKeyPrefix *string          `json:"replace_key_prefix" doc:"What takes the place of key_prefix in the key; null to keep it."`
}

// SetWebsite is a Website to set.
type SetWebsite struct {
	IndexDocument    *string          `json:"index_document,omitzero" required:"false" minLength:"1" maxLength:"1024" doc:"What is added to a path that is empty or ends in a slash, such as index.html; either this or redirect_host."`
	ErrorDocument    *string          `json:"error_document,omitzero" required:"false" minLength:"1" maxLength:"1024" doc:"Key of the object that is the body of errors."`
	RedirectHost     *string          `json:"redirect_host,omitzero" required:"false" minLength:"1" maxLength:"255" doc:"Where every request is redirected, such as example.com."`
	RedirectProtocol *WebsiteProtocol `json:"redirect_protocol,omitzero" required:"false" doc:"With redirect_host; that of the website when left out."`
	Rules            []SetWebsiteRule `json:"rules,omitzero" required:"false" nullable:"true" maxItems:"50" doc:"Redirect some requests; the first that fits counts."`
}

// SetWebsiteRule is a WebsiteRule to set.
type SetWebsiteRule struct {
	KeyPrefix        *string          `json:"key_prefix,omitzero" required:"false" maxLength:"1024" doc:"What the keys begin with that it is about; any when left out."`
	ErrorStatus      *WholeNumber     `json:"error_status,omitzero" required:"false" minimum:"400" maximum:"505" doc:"The status of the error in whose place it redirects; whatever the status would be when left out."`
	RedirectHost     *string          `json:"redirect_host,omitzero" required:"false" minLength:"1" maxLength:"255" doc:"That of the website when left out."`
	RedirectProtocol *WebsiteProtocol `json:"redirect_protocol,omitzero" required:"false" doc:"That of the website when left out."`
	RedirectStatus   *WholeNumber     `json:"redirect_status,omitzero" required:"false" minimum:"301" maximum:"308" doc:"301, 302, 303, 307 or 308; 301 when left out."`
	ReplaceKey       *string          `json:"replace_key,omitzero" required:"false" maxLength:"1024" doc:"What takes the place of the key."`
	ReplaceKeyPrefix *string          `json:"replace_key_prefix,omitzero" required:"false" maxLength:"1024" doc:"What takes the place of key_prefix in the key; not together with replace_key."`
}
