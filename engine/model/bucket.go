package model

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bucket holds objects. Every change updates ObjectCount and SizeBytes in its own
// transaction, so they are exact.
type Bucket struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Name         string `json:"name"`
	Public       bool   `json:"public"`
	// ObjectCount and SizeBytes are of all versions. NoncurrentCount and NoncurrentBytes are the part of them that is not
	// current: earlier versions, and delete markers.
	ObjectCount     int64 `json:"object_count"`
	SizeBytes       int64 `json:"size_bytes"`
	NoncurrentCount int64 `json:"noncurrent_count,omitempty"`
	NoncurrentBytes int64 `json:"noncurrent_bytes,omitempty"`
	// Versioning says whether versions are kept that are overwritten or deleted.
	Versioning Versioning `json:"versioning,omitempty"`
	// Lock is nil if versions cannot be locked.
	Lock *BucketLock       `json:"lock,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	// Expiry are the rules by which objects are removed for their age, sorted by their prefixes.
	Expiry Expiry `json:"expiry,omitempty"`
	// Lifecycle is the document in which an S3 client set Expiry, "" if it was set otherwise.
	Lifecycle string `json:"lifecycle,omitempty"`
	// PublicPrefixes are what the keys of objects begin with that everybody may read, whatever Public says.
	PublicPrefixes []string `json:"public_prefixes,omitempty"`
	// PublicListing says whether everybody may list the keys of the objects, with PublicPrefixes those below them, by the S3 endpoint.
	PublicListing bool `json:"public_listing,omitempty"`
	// CORS, Policy and PublicAccessBlock are what S3 clients set. Policy is the document that said what is public.
	CORS              []CORSRule         `json:"cors,omitempty"`
	Policy            string             `json:"policy,omitempty"`
	PublicAccessBlock *PublicAccessBlock `json:"public_access_block,omitempty"`
	// Website is nil if the bucket is served as none.
	Website *Website `json:"website,omitempty"`
	// HistorySince is the moment since when no version was removed for good, except current objects by their age (Expiry): the
	// others of any later moment are all there, in the bucket or in the trash.
	HistorySince time.Time `json:"history_since,omitzero"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	// NameOrder is higher than that of the buckets that had the same name when this one got it, at its creation or from the
	// trash. Times would not do: a wrong clock would give the name to another organization.
	NameOrder int64 `json:"name_order,omitempty"`
}

// Tag identifies the settings of the bucket. Its objects do not count.
func (b Bucket) Tag() string {
	b.ObjectCount, b.SizeBytes, b.NoncurrentCount, b.NoncurrentBytes = 0, 0, 0, 0
	b.UpdatedAt, b.HistorySince, b.NameOrder = time.Time{}, time.Time{}, 0
	return Tag(b)
}

// VersionLength is the length of an object's version in bytes.
const VersionLength = 26

// Object is a stored stream of bytes under a key.
type Object struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	// Version is the ULID of the upload; it orders the objects of a bucket by age.
	Version string `json:"version"`
	// Versioned means that it was made while its bucket kept versions. Otherwise it is the null version of its key.
	Versioned bool `json:"versioned,omitempty"`
	// DeleteMarker means that it has no bytes: with it, the key was deleted.
	DeleteMarker bool `json:"delete_marker,omitempty"`
	// NoncurrentAt is since when it is not the latest version of its key, zero while it is.
	NoncurrentAt   time.Time `json:"noncurrent_at,omitzero"`
	Blob           string    `json:"blob"`    // reference to the bytes in package blobstore
	Segment        uint32    `json:"segment"` // journal segment, 0 if the bytes are in a file of their own
	SizeBytes      int64     `json:"size_bytes"`
	ContentType    string    `json:"content_type"`
	CRC32C         uint32    `json:"crc32c"`
	ChecksumSHA256 string    `json:"checksum_sha256"` // base64 as the client sent it, or ""
	LastModified   time.Time `json:"last_modified"`
	// ETag is the MD5 of an object that was uploaded by the S3 protocol, or of its parts; "" for others.
	ETag string `json:"etag,omitempty"`
	// Attributes is nil if the client sent none.
	Attributes *Attributes `json:"attributes,omitempty"`
	// Lock is nil if the version was never locked.
	Lock *ObjectLock       `json:"lock,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	// CopyOf is the version of the key that a restore of the bucket copied to this one; see Origin.
	CopyOf string `json:"copy_of,omitempty"`
	// Absences are the times in which it was in the trash, oldest first.
	Absences []Absence `json:"absences,omitempty"`
	// Replaced is the object before this one, while the off-site copy may not have the bytes of this one: a
	// recovery then brings that one back, or the one that that one replaced.
	Replaced *Object `json:"replaced,omitempty"`
}

// PropertiesTag identifies what clients can change of the version.
func (o Object) PropertiesTag() string {
	return Tag([]any{o.ContentType, o.Attributes, o.Tags, o.Lock})
}

// EntityTag returns the object's ETag in the S3 protocol, without quotes. If its MD5 is unknown, it has the form of a
// multipart upload's, so that no client takes it for an MD5.
func (o Object) EntityTag() string {
	if o.ETag != "" {
		return o.ETag
	}
	return o.Version + "-1"
}

// TrashedBucket is a deleted bucket that can still be restored with its objects.
type TrashedBucket struct {
	Bucket
	DeletedAt time.Time `json:"deleted_at"`
}

// TrashedObject is a deleted object that can still be restored.
type TrashedObject struct {
	Object
	Organization string    `json:"organization"`
	DeletedAt    time.Time `json:"deleted_at"`
}

var (
	bucketName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	ipAddressed = regexp.MustCompile(`^([0-9]+\.){3}[0-9]+$`) // valid or not, as in S3
)

// ValidateBucketName checks a bucket's name against S3's rules for general
// purpose buckets.
func ValidateBucketName(field, name string) error {
	if !bucketName.MatchString(name) {
		return Invalid(field, "must have 3 to 63 lower-case letters, digits, dots and hyphens, beginning and ending with a letter or digit")
	}
	if strings.Contains(name, "..") || strings.Contains(name, ".-") || strings.Contains(name, "-.") {
		return Invalid(field, "must not have dots beside dots or hyphens")
	}
	if ipAddressed.MatchString(name) {
		return Invalid(field, "must not look like an IP address")
	}
	return validateBucketAffixes(field, name)
}

func validateBucketAffixes(field, name string) error {
	for _, prefix := range []string{"xn--", "sthree-", "amzn-s3-demo-"} {
		if strings.HasPrefix(name, prefix) {
			return Invalid(field, "must not begin with %q", prefix)
		}
	}
	for _, suffix := range []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"} {
		if strings.HasSuffix(name, suffix) {
			return Invalid(field, "must not end with %q", suffix)
		}
	}
	return nil
}

// MaxObjectKey is the longest object key, in bytes.
const MaxObjectKey = 1024

// ValidateNewObjectKey is ValidateObjectKey for an object to make. XML, and so a list of the S3 endpoint, cannot carry the two
// characters that it refuses.
func ValidateNewObjectKey(field, key string) error {
	if err := ValidateObjectKey(field, key); err != nil {
		return err
	}
	if strings.ContainsAny(key, "\ufffe\uffff") {
		return Invalid(field, "must not have the characters U+FFFE and U+FFFF")
	}
	return nil
}

// ValidateObjectKey checks an object's key. Keys are byte-exact. "." and ".."
// are refused as segments because browsers and proxies rewrite them, so deleting
// one object could delete another.
func ValidateObjectKey(field, key string) error {
	switch {
	case key == "":
		return Invalid(field, "must not be empty")
	case len(key) > MaxObjectKey:
		return Invalid(field, "must have at most %d bytes", MaxObjectKey)
	case !utf8.ValidString(key):
		return Invalid(field, "must be valid UTF-8")
	case strings.ContainsFunc(key, unicode.IsControl):
		return Invalid(field, "must not have control characters")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return Invalid(field, `must not have "." or ".." as a segment`)
		}
	}
	return nil
}
