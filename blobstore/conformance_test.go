package blobstore_test

import (
	"testing"

	"holdfast/blobstore"
	"holdfast/blobstore/blobstoretest"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string]blobstore.Options{
		"usual":         {},
		"tiny":          {DirectorySize: 3, SegmentSize: 200},
		"nothing small": {Inline: 1},
	} {
		t.Run(name, func(t *testing.T) {
			blobstoretest.Run(t, func(t *testing.T, opening blobstoretest.Opening) blobstoretest.Backend {
				opts := opts
				opts.After, opts.Deliver = opening.After, opening.Deliver
				s, err := blobstore.Open(opening.Dir, opts)
				if err != nil {
					t.Fatal(err)
				}
				return blobstoretest.Of(s)
			})
		})
	}
}
