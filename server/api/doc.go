// Package api is holdfast's REST API, everything under /v1: conversions to the types of package wire, the route
// table, and the OpenAPI document generated from both.
//
// The router (router.go) finds a request's row in the table (routes.go), which names its operation in engine/model.
// Package gate checks the key, its scope, the dangerous-operations toggle and its budget. The form (form.go) checks
// the headers, the query, and that the body is JSON. The gate notes the Idempotency-Key. huma decodes the request
// and checks its fields, except for upload bodies, which are streamed. The handler makes one call of the engine, and
// returns a record in the envelope. The gate audits the request once, whatever its outcome.
//
// Invariants: every response is JSON in the envelope and has the request's id; an error that is not a *model.Error
// is logged in full and answered with "internal error"; client input is never echoed except for field names, since
// it may be a password; there are no redirects.
package api
