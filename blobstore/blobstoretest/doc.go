// Package blobstoretest is the suite every blob store backend must pass: what
// package blobstore promises, without a word about files.
package blobstoretest
