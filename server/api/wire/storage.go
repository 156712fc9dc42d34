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
	ID              string    `json:"id"`
	Project         string    `json:"project" doc:"Id of its project."`
	Name            string    `json:"name"`
	Public          bool      `json:"public" doc:"Whether anybody may download its objects."`
	PublicURL       *string   `json:"public_url" doc:"What the public_url of its objects begins with."`
	ObjectCount     int64     `json:"object_count"`
	SizeBytes       int64     `json:"size_bytes"`
	ExpireAfterDays *int      `json:"expire_after_days" doc:"After how many days objects are removed; null when they are kept."`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
}

// Object is an object's record.
type Object struct {
	Key            string            `json:"key"`
	SizeBytes      int64             `json:"size_bytes"`
	ContentType    string            `json:"content_type"`
	ETag           string            `json:"etag" doc:"Names this version of the object."`
	ChecksumCRC32C string            `json:"checksum_crc32c" doc:"Base64 of the big-endian CRC-32C."`
	ChecksumSHA256 *string           `json:"checksum_sha256" doc:"Base64; null unless the uploader sent it."`
	LastModified   time.Time         `json:"last_modified"`
	Metadata       map[string]string `json:"metadata" doc:"What a client of the S3 protocol has stored with the object, by name; empty for other objects."`
	DownloadURL    *string           `json:"download_url" doc:"Signed; works for 15 minutes, without a key. Null for a key without the scope storage:read, which uploads need not have."`
	PublicURL      *string           `json:"public_url" doc:"Works as long as the bucket is public."`
}

// CreateBucket is a request to create a bucket.
type CreateBucket struct {
	Project string `json:"project" maxLength:"64" doc:"Id of the project."`
	Name    string `json:"name" doc:"3 to 63 lower-case letters, digits, dots and hyphens. Unique in the organization."`
	Public  *bool  `json:"public,omitzero" required:"false" doc:"Whether anybody may download its objects; false when left out."`
}

// UpdateBucket is a request to change a bucket.
type UpdateBucket struct {
	Public          *bool        `json:"public,omitzero" required:"false" doc:"Whether anybody may download its objects; unchanged when left out."`
	ExpireAfterDays *WholeNumber `json:"expire_after_days,omitzero" required:"false" minimum:"0" maximum:"36500" doc:"After how many days objects are removed; 0 keeps them; unchanged when left out. Setting or shortening it deletes data: the key must also hold the scope storage:delete, and its dangerous-operations toggle must be on."`
}
