package model

import "time"

// Upload is an object uploaded in parts, which may arrive days apart.
type Upload struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Bucket       string `json:"bucket"`
	Key          string `json:"key"`
	ContentType  string `json:"content_type"`
	// Attributes and Tags are stored with the object; nil for none.
	Attributes *Attributes       `json:"attributes,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	IfAbsent   bool              `json:"if_absent"`
	// Length is the size of the complete object in bytes, Offset is the number of
	// durable bytes, and CRC32C is their checksum.
	Length int64  `json:"length"`
	Offset int64  `json:"offset"`
	CRC32C uint32 `json:"crc32c"`
	// Metadata is the Upload-Metadata header as the client sent it.
	Metadata string `json:"metadata,omitempty"`
	// Part is the reference to the bytes in package blobstore.
	Part string `json:"part"`
	// Complete means that the upload has become the object.
	Complete bool `json:"complete,omitempty"`
	// Left means that the authority of the caller that sent the last bytes ended before the upload was complete: another
	// caller has to complete it.
	Left bool `json:"left,omitempty"`
	// ExpiresAt is when an incomplete upload without progress is abandoned, or a
	// complete one's record is removed.
	ExpiresAt time.Time `json:"expires_at"`
}
