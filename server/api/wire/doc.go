// Package wire holds the types of holdfast's REST API as they are on the
// wire: what requests carry and what answers hold. The server and the client
// both use them, so each is declared once. It imports the standard library
// only.
//
// A pointer is a field that may be null. In a request nil leaves the field
// out, and the server's default applies; new("text") sets it. Times are in
// UTC, to the microsecond. A name that ends in Bytes or Seconds says its
// unit; percentages are 0 to 100. Identifiers are opaque.
//
// The tags doc, format, example, minLength and the like describe a field in
// the OpenAPI document.
package wire
