package model

import (
	"net/url"
	"regexp"
	"unicode"
	"unicode/utf8"
)

// The limits of what a client stores with an object, in bytes.
const (
	MaxMetadata     = 2 << 10 // all names and values of the metadata
	MaxStoredHeader = 1 << 10 // a header
)

// Attributes are what a client stores with an object beside its bytes and content type.
type Attributes struct {
	CacheControl       string `json:"cache_control,omitempty"`
	ContentDisposition string `json:"content_disposition,omitempty"`
	ContentEncoding    string `json:"content_encoding,omitempty"`
	ContentLanguage    string `json:"content_language,omitempty"`
	Expires            string `json:"expires,omitempty"`
	WebsiteRedirect    string `json:"website_redirect,omitempty"`
	// Metadata is the user's, by name in lower case.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Checksum is the checksum that the client sent: its algorithm in S3, and its value as the client sent it.
	ChecksumAlgorithm string `json:"checksum_algorithm,omitempty"`
	Checksum          string `json:"checksum,omitempty"`
	// Parts is the number of the parts of a multipart upload, and Upload its id.
	Parts  int    `json:"parts,omitempty"`
	Upload string `json:"upload,omitempty"`
	// PartSizes are the sizes of those parts in bytes.
	PartSizes []int64 `json:"part_sizes,omitempty"`
}

// IsStorable reports whether text of at most that many bytes can be stored as a header's value.
func IsStorable(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !containsControl(text)
}

func containsControl(text string) bool {
	for _, r := range text {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}

// ValidateStoredHeader checks a header that is stored with an object.
func ValidateStoredHeader(field, value string) error {
	if !IsStorable(value, MaxStoredHeader) {
		return Invalid(field, "must be text of at most %d bytes without control characters", MaxStoredHeader)
	}
	return nil
}

var metadataName = regexp.MustCompile("^[!#$%&'*+\\-.^_`|~0-9a-z]+$")

// ValidateMetadata checks the user's metadata of an object. Names are those of headers, in lower case.
func ValidateMetadata(field string, metadata map[string]string) error {
	size := 0
	for name, value := range metadata {
		if !metadataName.MatchString(name) {
			return Invalid(field, "must have names of lower-case letters, digits and hyphens, as headers have")
		}
		if !IsStorable(value, MaxMetadata) {
			return Invalid(field, "must have values that are text without control characters")
		}
		size += len(name) + len(value)
	}
	if size > MaxMetadata {
		return Invalid(field, "must have at most %d bytes of names and values, and has %d", MaxMetadata, size)
	}
	return nil
}

// ValidateObjectTags checks the tags of an object.
func ValidateObjectTags(field string, tags map[string]string) error {
	if len(tags) > MaxObjectTags {
		return Invalid(field, "must be at most %d tags", MaxObjectTags)
	}
	for key, value := range tags {
		if !IsTagKey(key) || !IsTagValue(value) {
			return Invalid(field, "must have keys of 1 to %d and values of at most %d letters, digits, spaces and _.:/=+-@", MaxTagKey, MaxTagValue)
		}
	}
	return nil
}

// ParseObjectTags parses tags in the form of a query: a=1&b=2.
func ParseObjectTags(field, text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, Invalid(field, "must be tags in the form of a query, such as team=blue&stage=new, each once")
	}
	tags := map[string]string{}
	for key, all := range values {
		if len(all) > 1 {
			return nil, Invalid(field, "must have each tag once")
		}
		tags[key] = all[0]
	}
	return tags, ValidateObjectTags(field, tags)
}
