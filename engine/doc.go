// Package engine is what holdfast does: one file for each operation, called
// alike by the API, the console and the operator's commands. An operation
// checks its input, claims what it needs, does its I/O outside any
// transaction, and commits what it changed together with its audit entry.
package engine
