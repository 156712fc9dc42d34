// Package sigv4 verifies AWS Signature Version 4 of S3 requests, and the integrity of their bodies.
//
// Parse reads the authorization of a request, from the header Authorization or from the query of a presigned URL.
// Request.Verify checks its signature, time and region. Request.Body returns the payload, decoded if it is sent in
// chunks. The payload is verified as it is read: Read returns io.EOF only if every signature, checksum and length that
// the client sent is correct, so a caller that stores the payload must not publish it before io.EOF.
//
// The package knows nothing of keys and buckets, and does no I/O except on the body it is given.
package sigv4
