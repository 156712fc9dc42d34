// Package model is holdfast's vocabulary: the records it keeps, their states
// and transitions, the scopes of a key, the table of operations and the errors
// a client may see. It depends on the standard library alone, so that every
// other package may depend on it.
package model
