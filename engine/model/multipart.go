package model

import "time"

// Multipart is an object that is being uploaded in numbered parts by the S3 protocol.
type Multipart struct {
	ID           string            `json:"id"`
	Organization string            `json:"organization"`
	Bucket       string            `json:"bucket"`
	Key          string            `json:"key"`
	ContentType  string            `json:"content_type"`
	Attributes   *Attributes       `json:"attributes,omitempty"`
	Lock         *ObjectLock       `json:"lock,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	// FullChecksum means that the object gets a checksum of its whole content, not one of those of its parts.
	FullChecksum bool `json:"full_checksum,omitempty"`
	// Joint is the reference in package blobstore to the bytes of the parts that are at their place in the object: part
	// number n begins at (n-1)*PlaceBytes. "" before the first of them.
	Joint      string `json:"joint,omitempty"`
	PlaceBytes int64  `json:"place_bytes,omitempty"`
	// PlacedBytes is the size of the parts in Joint, also of those that were replaced.
	PlacedBytes int64 `json:"placed_bytes,omitempty"`
	// ReplacedBytes is the size of the parts in Joint that were replaced: their bytes stay there until the upload ends.
	ReplacedBytes int64     `json:"replaced_bytes,omitempty"`
	CreatedAt     time.Time `json:"created_at"`
	// ExpiresAt is when the upload is aborted, unless another part arrives.
	ExpiresAt time.Time `json:"expires_at"`
}

// MultipartPart is one part of a Multipart, complete and durable.
type MultipartPart struct {
	Multipart    string `json:"multipart"`
	Organization string `json:"organization"`
	Number       int    `json:"number"`
	// Part is the reference to the bytes in package blobstore, which begin there at Start; CRC32C is their checksum. It is
	// the Joint of the upload for a part at its place.
	Part      string `json:"part"`
	Start     int64  `json:"start,omitempty"`
	SizeBytes int64  `json:"size_bytes"`
	CRC32C    uint32 `json:"crc32c"`
	MD5       string `json:"md5"` // in hexadecimal
	// Checksum is that of the upload's algorithm in base64. If the upload has none, it is the default one's, or "" if the
	// client sent another.
	Checksum string `json:"checksum,omitempty"`
	// Blocks are the checksums of the bytes' blocks, as of blobstore.Section; nil if they are not known.
	Blocks []byte    `json:"blocks,omitempty"`
	At     time.Time `json:"at"`
}
