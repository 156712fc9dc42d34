// Package s3 serves the buckets by the S3 protocol.
//
// A request passes the same gate as one of the JSON API, and ends in the same calls of the engine: key, scopes,
// dangerous-operations toggle, budgets, plans, trash and audit log are those of the API. The key signs the request (package
// sigv4); its id is the access key id. A bucket is found by its name in the key's organization.
//
// The routes are in routes.go. What is not there is answered with NotImplemented; docs/s3.md has the table.
package s3
