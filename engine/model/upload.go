package model

import "time"

// Upload is an object that is uploaded in parts, which may be days apart.
type Upload struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Bucket       string `json:"bucket"`
	Key          string `json:"key"`
	ContentType  string `json:"content_type"`
	IfAbsent     bool   `json:"if_absent"`
	// Length is how many bytes the object will have, Offset how many of them
	// are durable, and CRC32C that of these.
	Length int64  `json:"length"`
	Offset int64  `json:"offset"`
	CRC32C uint32 `json:"crc32c"`
	// Metadata is Upload-Metadata as the client sent it.
	Metadata string `json:"metadata,omitempty"`
	// Part is where package blobstore has the bytes.
	Part string `json:"part"`
	// Complete says that it has become the object.
	Complete bool `json:"complete,omitempty"`
	// ExpiresAt is when it is given up unless it goes on before, or forgotten
	// when it is complete.
	ExpiresAt time.Time `json:"expires_at"`
}
