package objects

import (
	"net/url"
	"strings"
	"time"

	"holdfast/engine/model"
)

// LinkOptions are what a signed URL of a download says beside the object.
type LinkOptions struct {
	// Maker is the key or person with which the link ends, "" for links that end soon.
	Maker       string
	Version     string // "" for the current one
	Disposition string // of the content, "" for what the object says
}

// MaxLinkLife is how long a signed URL can be valid that a client makes.
const MaxLinkLife = 7 * 24 * time.Hour

// query returns the options as the beginning of a query, "" for none.
func (o LinkOptions) query() string {
	values := url.Values{}
	for name, value := range map[string]string{"by": o.Maker, "version_id": o.Version, "disposition": o.Disposition} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// linkOf returns the options in a signed URL, and their text. They are valid once the signature is.
func linkOf(path, target string) (o LinkOptions, query string) {
	rest, found := strings.CutPrefix(target, path+"?")
	text, _, ended := strings.Cut(rest, "&expires=")
	values, err := url.ParseQuery(text)
	if !found || !ended || err != nil {
		return o, ""
	}
	return LinkOptions{Maker: values.Get("by"), Version: values.Get("version_id"), Disposition: values.Get("disposition")}, "?" + text
}

// linkTo returns a path by which its holder may download an object.
func (s *Service) linkTo(o model.Object, options LinkOptions, life time.Duration) string {
	query := options.query()
	return s.core.Signer.SignedPath(pathOf(o.Bucket, o.Key)+query, linkSubject(o.Bucket, o.Key, query), s.core.Clock().Add(life))
}

// linkSubject identifies in a signature what a link allows. It is unambiguous: a bucket's id contains no slash, and a key
// no line break.
func linkSubject(bucket, key, query string) string {
	if query != "" {
		query = "\n" + query
	}
	return "object " + bucket + "/" + key + query
}

// DownloadLink is a signed URL to make.
type DownloadLink struct {
	Name VersionName
	// Life is how long it is valid.
	Life        time.Duration
	Disposition string
}

// LinkCreate returns a path by which its holder may download an object, and until when.
func (s *Service) LinkCreate(call *model.Call, in DownloadLink) (path string, until time.Time, err error) {
	if err := model.ValidateObjectKey("key", in.Name.Key); err != nil {
		return "", until, err
	}
	if err := model.ValidateStoredHeader("content_disposition", in.Disposition); err != nil {
		return "", until, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return "", until, err
	}
	o, err := s.VersionGet(call, in.Name.Bucket, in.Name.Key, in.Name.Version)
	if err != nil {
		return "", until, err
	}
	until = s.core.Clock().Add(in.Life).Truncate(time.Second)
	call.Note("expires_at", until.UTC().Format(time.RFC3339))
	return s.linkTo(o.Object, LinkOptions{call.Actor.ID, in.Name.Version, in.Disposition}, in.Life), until, nil
}
