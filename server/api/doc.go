// Package api is holdfast's REST API, everything under /v1: conversions to the types of package wire,
// the one route table, and the OpenAPI document made of both.
//
// A request walks one way. The router (router.go) finds its row in the table
// (routes.go), which says which operation of engine/model it is. Package gate
// checks the key, its scope, the dangerous-operations toggle and its budget. The
// form (form.go) checks the headers, the query, and that the body is JSON. The
// gate notes the Idempotency-Key. huma decodes the request and checks its
// fields, but for the bodies of uploads, which are streamed. The handler makes one
// call of the engine, and answers a record in the envelope. Whatever the end, the
// gate audits the request once.
//
// Invariants: every answer is JSON in the envelope and carries the request's
// id; an error that is not a *model.Error is logged whole and answered
// "internal error"; what a client sent is never echoed beyond the names of
// fields, since it may be a password; there is no redirect.
package api
