package blobstore_test

import (
	"testing"

	"holdfast/blobstore"
	"holdfast/blobstore/blobstoretest"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string]blobstore.Options{
		"usual":            {},
		"tiny directories": {DirectorySize: 3},
	} {
		t.Run(name, func(t *testing.T) {
			blobstoretest.Run(t, func(t *testing.T, dir string) blobstoretest.Backend {
				s, err := blobstore.Open(dir, opts)
				if err != nil {
					t.Fatal(err)
				}
				return blobstoretest.Of(s)
			})
		})
	}
}
