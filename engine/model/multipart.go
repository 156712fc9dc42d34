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
	FullChecksum bool      `json:"full_checksum,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
	// ExpiresAt is when the upload is aborted, unless another part arrives.
	ExpiresAt time.Time `json:"expires_at"`
}

// MultipartPart is one part of a Multipart, complete and durable.
type MultipartPart struct {
	Multipart    string `json:"multipart"`
	Organization string `json:"organization"`
	Number       int    `json:"number"`
	// Part is the reference to the bytes in package blobstore, CRC32C is their checksum there.
	Part      string    `json:"part"`
	SizeBytes int64     `json:"size_bytes"`
	CRC32C    uint32    `json:"crc32c"`
	MD5       string    `json:"md5"`                // in hexadecimal
	Checksum  string    `json:"checksum,omitempty"` // the client's, in base64, "" if it sent none
	At        time.Time `json:"at"`
}
