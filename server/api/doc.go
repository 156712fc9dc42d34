// Package api is holdfast's REST API, everything under /v1: the wire types,
// the one route table, and the OpenAPI document made of both.
//
// A request walks one way. The router finds its row in the table (routes.go).
// The gate (gate.go) knows from the row which operation of engine/model it is
// and checks the key, its scope, the dangerous-operations toggle and its
// budget, then the form of the query and of the body, all before anything
// else reads the request. The handler decodes, makes one call of the engine,
// and answers a record in the envelope. Whatever the end, the exchange is
// audited once.
//
// Invariants: every answer is JSON in the envelope and carries the request's
// id; an error that is not a *model.Error is logged whole and answered
// "internal error"; what a client sent is never echoed beyond the names of
// fields, since it may be a password; there is no redirect.
package api
