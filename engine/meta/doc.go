// Package meta stores holdfast's metadata in one bbolt file.
//
// Every change goes through DB.Update, which groups the changes that wait for the
// same sync into one transaction. A change is on disk when Update returns nil, and
// has left no trace when it returns an error. Records are stored in typed tables
// with their indexes; audit entries, objects and blobs have their own layouts. No
// other package imports bbolt.
package meta
