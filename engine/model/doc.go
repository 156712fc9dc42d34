// Package model is holdfast's vocabulary: the stored records, their states and
// transitions, the scopes of a key, the table of operations and the errors a
// client may see. It depends only on the standard library, so every other package
// may depend on it.
package model
