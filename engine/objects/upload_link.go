package objects

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/engine/model"
)

// UploadLink lets its holder upload what it describes, for as long as its maker might.
type UploadLink struct {
	// Maker is the key or person that made it, and Organization theirs.
	Maker        string `json:"by"`
	Organization string `json:"org"`
	// Method is PUT for one body, or POST for an HTML form.
	Method string `json:"m"`
	Bucket string `json:"b"`
	// Key is the key of the object, or Prefix what it begins with.
	Key    string `json:"k,omitempty"`
	Prefix string `json:"p,omitempty"`
	// MaxBytes is the maximum size of an object, 0 for the appliance's.
	MaxBytes int64 `json:"s,omitempty"`
	// ContentType is the media type, or with * at its end what it begins with; "" for any.
	ContentType string `json:"t,omitempty"`
	// IfAbsent refuses to replace objects.
	IfAbsent bool  `json:"n,omitempty"`
	Expires  int64 `json:"e"` // in seconds since 1970
}

// UploadLinkCreate signs a link of the caller's that is valid for that long, and returns its text.
func (s *Service) UploadLinkCreate(call *model.Call, link UploadLink, life time.Duration) (text string, until time.Time, err error) {
	if err := link.validate(); err != nil {
		return "", until, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return "", until, err
	}
	if _, err := s.bucket(call, link.Bucket); err != nil {
		return "", until, err
	}
	call.Resource = objectResource(link.Bucket, link.Key+link.Prefix)
	until = s.core.Clock().Add(life).Truncate(time.Second)
	link.Maker, link.Organization, link.Expires = call.Actor.ID, call.Organization, until.Unix()
	call.Note("method", link.Method)
	call.Note("expires_at", until.UTC().Format(time.RFC3339))
	claims, err := json.Marshal(link)
	if err != nil {
		return "", until, fmt.Errorf("encode link: %w", err)
	}
	body := base64.RawURLEncoding.EncodeToString(claims)
	return body + "." + s.signUploadLink(body), until, nil
}

func (s *Service) signUploadLink(body string) string {
	return base64.RawURLEncoding.EncodeToString(s.core.Signer.Sign("upload link\n" + body))
}

func (l UploadLink) validate() error {
	if (l.Key == "") == (l.Prefix == "") {
		return model.Invalid("key", "or key_prefix must be given, and not both")
	}
	if l.Key != "" {
		return model.ValidateNewObjectKey("key", l.Key)
	}
	return model.ValidateNewObjectKey("key_prefix", l.Prefix+"x")
}

// LinkParameter is the parameter of URLs that holds the text of an upload link.
const LinkParameter = "link"

// Path returns the path of the link with a text. For a prefix and PUT, its path ends with the prefix.
func (l UploadLink) Path(text string) string {
	path := ObjectPath + l.Bucket
	if l.Method == LinkByPut {
		path += "/" + l.Key + l.Prefix
	}
	return (&url.URL{Path: path}).EscapedPath() + "?" + LinkParameter + "=" + text
}

// UploadLinkOf returns the link with a text, or an error if the text is not one that is still valid.
func (s *Service) UploadLinkOf(text string) (link UploadLink, err error) {
	body, signature, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(signature), []byte(s.signUploadLink(body))) {
		return link, model.Errorf(model.CodeForbidden, "the link is not one of this appliance, or was changed")
	}
	claims, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(claims, &link)
	}
	if err != nil {
		return link, fmt.Errorf("read link: %w", err)
	}
	if s.core.Clock().Unix() >= link.Expires {
		return link, model.Errorf(model.CodeForbidden, "the link has expired: ask for a new one")
	}
	return link, nil
}

// Upload returns the upload that the link allows into an object, or an error.
func (l UploadLink) Upload(bucket, key, contentType string) (Upload, error) {
	switch {
	case bucket != l.Bucket:
		return Upload{}, model.Errorf(model.CodeForbidden, "the link is for another bucket")
	case l.Key != "" && key != l.Key:
		return Upload{}, model.Errorf(model.CodeForbidden, "the link is for another key")
	case !strings.HasPrefix(key, l.Prefix):
		return Upload{}, model.Errorf(model.CodeForbidden, "the link is for keys that begin with %q", l.Prefix)
	case !l.allowsType(contentType):
		return Upload{}, model.Errorf(model.CodeForbidden, "the link is for the Content-Type %s", l.ContentType)
	}
	return Upload{Bucket: bucket, Key: key, ContentType: contentType, MaxBytes: l.MaxBytes, IfAbsent: l.IfAbsent, linked: true}, nil
}

func (l UploadLink) allowsType(contentType string) bool {
	begin, some := strings.CutSuffix(l.ContentType, "*")
	return l.ContentType == "" || contentType == l.ContentType || some && strings.HasPrefix(contentType, begin)
}

// Methods of links.
const (
	LinkByPut  = http.MethodPut
	LinkByForm = http.MethodPost
)
