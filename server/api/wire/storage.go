package wire

import (
	"strconv"
	"time"
)

// WholeNumber is an integer in any form that JSON allows, such as 1e2 and
// 100.0. Its field has bounds, so the value is exact.
type WholeNumber int

// UnmarshalJSON implements json.Unmarshaler.
func (n *WholeNumber) UnmarshalJSON(text []byte) error {
	number, err := strconv.ParseFloat(string(text), 64)
	*n = WholeNumber(number)
	return err
}

// DeletedObject is the result of deleting an object.
type DeletedObject struct {
	Key     string `json:"key"`
	Deleted bool   `json:"deleted"`
	Recoverable
}

// Bucket is a bucket's record.
type Bucket struct {
	ID              string       `json:"id"`
	Project         string       `json:"project" doc:"Id of its project."`
	Name            string       `json:"name"`
	Public          bool         `json:"public" doc:"Whether anybody may download its objects."`
	PublicPrefixes  []string     `json:"public_prefixes" doc:"What the keys begin with of objects that anybody may download, whatever public says."`
	PublicListing   bool         `json:"public_listing" doc:"Whether anybody may list its keys, by the S3 endpoint; with public prefixes only those below them."`
	PublicURL       *string      `json:"public_url" doc:"What the public_url of its objects begins with; null if none are public."`
	ObjectCount     int64        `json:"object_count"`
	SizeBytes       int64        `json:"size_bytes"`
	ExpireAfterDays *int         `json:"expire_after_days" doc:"After how many days objects are removed; null when they are kept."`
	ExpiryRules     []ExpiryRule `json:"expiry_rules" doc:"All rules by which objects and versions are removed for their age. The one with an empty prefix is for the whole bucket, and its days are expire_after_days."`
	Versioning      Versioning   `json:"versioning"`
	NoncurrentCount int64        `json:"noncurrent_count" doc:"How many of its objects are earlier versions and delete markers."`
	NoncurrentBytes int64        `json:"noncurrent_bytes" doc:"How many of its bytes earlier versions have."`
	ObjectLock      *BucketLock  `json:"object_lock" doc:"How long new versions are retained; null in a bucket without Object Lock."`
	CORS            []CORSRule   `json:"cors" doc:"From which pages of other origins browsers may use the bucket."`
	Website         *Website     `json:"website" doc:"How it is served as a website; null if it is none. Only what is public is served."`
	CreatedAt       time.Time    `json:"created_at"`
	UpdatedAt       time.Time    `json:"updated_at"`
}

// ExpiryRule has objects of a bucket removed for their age. Of several rules for an object, the shortest time counts.
type ExpiryRule struct {
	Prefix         string `json:"prefix" doc:"What the keys of the objects begin with; empty for all."`
	Days           *int   `json:"days" doc:"After how many days without a change objects are removed, or get a delete marker where versions are kept; null when they are kept."`
	NoncurrentDays *int   `json:"noncurrent_days" doc:"After how many days versions are removed that are not current any more, and delete markers without any other version; null when they are kept."`
}

// SetExpiryRule is a rule by which objects of a bucket are to be removed for their age.
type SetExpiryRule struct {
	Prefix         string       `json:"prefix,omitzero" required:"false" maxLength:"1024" doc:"What the keys of the objects begin with; all when left out."`
	Days           *WholeNumber `json:"days,omitzero" required:"false" minimum:"1" maximum:"36500" doc:"After how many days without a change objects are removed, or get a delete marker where versions are kept."`
	NoncurrentDays *WholeNumber `json:"noncurrent_days,omitzero" required:"false" minimum:"1" maximum:"36500" doc:"After how many days versions are removed that are not current any more, and delete markers without any other version."`
}

// BucketLock is the retention of new versions in a bucket with Object Lock.
type BucketLock struct {
	Mode  *LockMode `json:"mode" doc:"Null if new versions are not retained."`
	Days  int       `json:"days"`
	Years int       `json:"years"`
}

// SetBucketLock has versions of a bucket locked.
type SetBucketLock struct {
	Mode  *LockMode    `json:"mode,omitzero" required:"false" doc:"How new versions are retained, with days or years; not at all when left out."`
	Days  *WholeNumber `json:"days,omitzero" required:"false" minimum:"1" maximum:"36500"`
	Years *WholeNumber `json:"years,omitzero" required:"false" minimum:"1" maximum:"100"`
}

// CORSRule says from which pages of other origins browsers may use a bucket.
type CORSRule struct {
	Origins       []string     `json:"origins"`
	Methods       []CORSMethod `json:"methods"`
	Headers       []string     `json:"headers" doc:"Headers of requests."`
	ExposeHeaders []string     `json:"expose_headers" doc:"Headers of responses that pages may read."`
	MaxAgeSeconds *int         `json:"max_age_seconds" doc:"How long browsers may keep the answer to a preflight; null for their own default."`
}

// SetCORSRule is a CORSRule to set.
type SetCORSRule struct {
	Origins       []string     `json:"origins" minItems:"1" doc:"Such as https://example.com; each may have one *."`
	Methods       []CORSMethod `json:"methods" minItems:"1"`
	Headers       []string     `json:"headers,omitzero" required:"false" nullable:"true" doc:"Headers of requests; each may have one *."`
	ExposeHeaders []string     `json:"expose_headers,omitzero" required:"false" nullable:"true" doc:"Headers of responses that pages may read."`
	MaxAgeSeconds *int         `json:"max_age_seconds,omitzero" required:"false" minimum:"0" maximum:"86400" doc:"How long browsers may keep the answer to a preflight."`
}

// Retention is how long a version cannot be removed.
type Retention struct {
	Mode  LockMode  `json:"mode"`
	Until time.Time `json:"until"`
}

// ObjectOrder is the order of objects.
type ObjectOrder string

// The orders of objects.
const (
	ByNewest ObjectOrder = "newest"
	ByKey    ObjectOrder = "key"
)

// Object is an object's record.
type Object struct {
	Key            string            `json:"key"`
	SizeBytes      int64             `json:"size_bytes"`
	ContentType    string            `json:"content_type"`
	ETag           string            `json:"etag" doc:"Names this version of the object."`
	ChecksumCRC32C string            `json:"checksum_crc32c" doc:"Base64 of the big-endian CRC-32C."`
	ChecksumSHA256 *string           `json:"checksum_sha256" doc:"Base64; null unless the uploader sent it."`
	LastModified   time.Time         `json:"last_modified"`
	Metadata       map[string]string `json:"metadata" doc:"The user's, by name in lower case."`
	Tags           map[string]string `json:"tags"`
	CacheControl   *string           `json:"cache_control" doc:"The Cache-Control of downloads; null for the default."`
	Disposition    *string           `json:"content_disposition" doc:"The Content-Disposition of downloads; null for the default. What a browser could execute is saved, whatever this says."`
	VersionID      string            `json:"version_id" doc:"Names the version; null, as text, if it was made while the bucket kept no versions."`
	Retention      *Retention        `json:"retention" doc:"Null if the version was never retained."`
	LegalHold      bool              `json:"legal_hold" doc:"Whether the version cannot be removed until the hold is taken away."`
	DownloadURL    *string           `json:"download_url" doc:"Signed; works for 15 minutes, without a key. Null for a key without the scope storage:read, which uploads and changes need not have."`
	PublicURL      *string           `json:"public_url" doc:"Works as long as the object is public; null if it is not."`
}

// ObjectVersion is a version of an object, or a delete marker.
type ObjectVersion struct {
	Key          string     `json:"key"`
	VersionID    string     `json:"version_id"`
	Latest       bool       `json:"latest" doc:"Whether no other version of the key is newer."`
	DeleteMarker bool       `json:"delete_marker" doc:"Whether it says that the key was deleted; it has no content."`
	SizeBytes    int64      `json:"size_bytes"`
	ContentType  string     `json:"content_type"`
	ETag         string     `json:"etag"`
	LastModified time.Time  `json:"last_modified"`
	NoncurrentAt *time.Time `json:"noncurrent_at" doc:"Since when it is not the latest; null while it is."`
	Retention    *Retention `json:"retention" doc:"Null if the version was never retained."`
	LegalHold    bool       `json:"legal_hold"`
}

// UpdateObject is a request to change what is stored with an object.
type UpdateObject struct {
	Metadata     map[string]string `json:"metadata,omitzero" required:"false" nullable:"true" doc:"Replaces all of the metadata; unchanged when left out. Names are in lower case; at most 2048 bytes in all."`
	Tags         map[string]string `json:"tags,omitzero" required:"false" nullable:"true" doc:"Replaces all tags, at most 10; unchanged when left out."`
	ContentType  *string           `json:"content_type,omitzero" required:"false" minLength:"1" maxLength:"255" doc:"Unchanged when left out."`
	CacheControl *string           `json:"cache_control,omitzero" required:"false" maxLength:"1024" doc:"At most 1024 bytes; empty for the default, unchanged when left out."`
	Disposition  *string           `json:"content_disposition,omitzero" required:"false" maxLength:"1024" doc:"At most 1024 bytes; empty for the default, unchanged when left out."`

	Retention        Resettable[Retention] `json:"retention,omitzero" required:"false" doc:"Until when the version cannot be removed, in the future; null for no retention; unchanged when left out. It can be made longer; in the mode compliance it cannot be made shorter or removed."`
	LegalHold        *bool                 `json:"legal_hold,omitzero" required:"false" doc:"Whether the version cannot be removed until the hold is taken away; unchanged when left out."`
	BypassGovernance *bool                 `json:"bypass_governance,omitzero" required:"false" doc:"Whether retention may be weakened in the mode governance: the key must also hold the scope storage:delete, and its dangerous-operations toggle must be on."`
}

// CopyObject is a request to make an object of another.
type CopyObject struct {
	Key           string  `json:"key" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" doc:"Key of the new object."`
	SourceBucket  *string `json:"source_bucket,omitzero" required:"false" minLength:"1" maxLength:"64" doc:"Id of the bucket to copy from; the same when left out."`
	SourceKey     string  `json:"source_key" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" doc:"Key of the object to copy; to bring an earlier version back, the same key."`
	SourceVersion *string `json:"source_version_id,omitzero" required:"false" minLength:"1" maxLength:"64" doc:"The version to copy; the current one when left out."`
}

// CreateUploadLink is a request to make a link by which its holder uploads without a key.
type CreateUploadLink struct {
	Method      *LinkMethod  `json:"method,omitzero" required:"false" doc:"PUT, when left out, for a request with the bytes; POST for an HTML form."`
	Key         *string      `json:"key,omitzero" required:"false" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" doc:"Key of the object; either this or key_prefix."`
	KeyPrefix   *string      `json:"key_prefix,omitzero" required:"false" minLength:"1" maxLength:"1000" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" doc:"What the keys of the objects begin with."`
	MaxBytes    *int64       `json:"max_bytes,omitzero" required:"false" minimum:"1" maximum:"9007199254740991" doc:"The largest object; the appliance's limit when left out."`
	ContentType *string      `json:"content_type,omitzero" required:"false" minLength:"1" maxLength:"255" pattern:"^[0-9A-Za-z!#$&^_.+-]+/([0-9A-Za-z!#$&^_.+-]+|[*])$" doc:"The media type of the objects, such as image/png or image/*; any when left out."`
	ExpiresIn   *WholeNumber `json:"expires_in,omitzero" required:"false" minimum:"1" maximum:"604800" doc:"Seconds for which the link is valid; an hour when left out."`
	IfAbsent    *bool        `json:"if_absent,omitzero" required:"false" doc:"Whether the link refuses to replace objects; a link to a key then works once."`
}

// UploadLink is a link by which its holder uploads without a key.
type UploadLink struct {
	Method    LinkMethod        `json:"method"`
	URL       string            `json:"url" doc:"With a key_prefix and PUT, its path ends with the prefix: add the rest of the key to it."`
	Headers   map[string]string `json:"headers" doc:"To send with PUT."`
	Fields    map[string]string `json:"fields" doc:"Of the form, before its file; its name is file. With a key_prefix, ${filename} in key is the file's name."`
	ExpiresAt time.Time         `json:"expires_at"`
}

// CreateDownloadLink is a request to make a link by which its holder downloads an object without a key.
type CreateDownloadLink struct {
	Key         string       `json:"key" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$"`
	Version     *string      `json:"version_id,omitzero" required:"false" minLength:"1" maxLength:"64" doc:"The version; whichever is current when left out."`
	ExpiresIn   *WholeNumber `json:"expires_in,omitzero" required:"false" minimum:"1" maximum:"604800" doc:"Seconds for which the link is valid; an hour when left out."`
	Disposition *string      `json:"content_disposition,omitzero" required:"false" minLength:"1" maxLength:"1024" doc:"The Content-Disposition of the download; the object's when left out."`
}

// DownloadLink is a link by which its holder downloads an object without a key.
type DownloadLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// CreateBucket is a request to create a bucket.
type CreateBucket struct {
	Project string `json:"project" maxLength:"64" doc:"Id of the project."`
	Name    string `json:"name" doc:"3 to 63 lower-case letters, digits, dots and hyphens. Unique in the organization."`
	Public  *bool  `json:"public,omitzero" required:"false" doc:"Whether anybody may download its objects; false when left out."`
}

// UpdateBucket is a request to change a bucket.
type UpdateBucket struct {
	Public          *bool           `json:"public,omitzero" required:"false" doc:"Whether anybody may download its objects; unchanged when left out."`
	PublicPrefixes  []string        `json:"public_prefixes,omitzero" required:"false" nullable:"true" maxItems:"20" doc:"What the keys begin with of objects that anybody may download, whatever public says, such as images/; at most 512 bytes each. Replaces all; unchanged when left out."`
	PublicListing   *bool           `json:"public_listing,omitzero" required:"false" doc:"Whether anybody may list its keys, by the S3 endpoint, with public prefixes only those below them; unchanged when left out."`
	ExpireAfterDays *WholeNumber    `json:"expire_after_days,omitzero" required:"false" minimum:"0" maximum:"36500" doc:"After how many days objects are removed; 0 keeps them; unchanged when left out. It is the rule of expiry_rules with an empty prefix. Setting or shortening it deletes data: the key must also hold the scope storage:delete, and its dangerous-operations toggle must be on."`
	ExpiryRules     []SetExpiryRule `json:"expiry_rules,omitzero" required:"false" nullable:"true" maxItems:"100" doc:"Replaces all rules by which objects and versions are removed for their age, which take at most 64 KiB in all; unchanged when left out. Not together with expire_after_days. Rules that remove something sooner delete data: the key must also hold the scope storage:delete, and its dangerous-operations toggle must be on."`
	Versioning      *Versioning     `json:"versioning,omitzero" required:"false" doc:"Whether versions are kept that are overwritten or deleted; unchanged when left out. It cannot be turned off once it was on, only suspended."`
	ObjectLock      *SetBucketLock  `json:"object_lock,omitzero" required:"false" doc:"Lets versions be locked, and says how new ones are; unchanged when left out. It needs versioning, and cannot be turned off again."`
	CORS            []SetCORSRule   `json:"cors,omitzero" required:"false" nullable:"true" maxItems:"100" doc:"Replaces all rules; unchanged when left out."`

	Website Resettable[SetWebsite] `json:"website,omitzero" required:"false" doc:"Serves the bucket as a website; null for no website; unchanged when left out. Forbidden where the operator serves no websites."`
}
