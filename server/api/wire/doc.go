// Package wire holds the types of holdfast's REST API: the bodies of requests
// and responses. The server and the client share them, so each is declared
// once. It imports only the standard library.
//
// A pointer is a field that may be null. In a request, nil leaves the field out
// and the server's default applies; new("text") sets it. Times are in UTC, to
// the microsecond. A name that ends in Bytes or Seconds states its unit;
// percentages are 0 to 100. Identifiers are opaque.
//
// The tags doc, format, example, minLength and the like describe a field in
// the OpenAPI document.
package wire
