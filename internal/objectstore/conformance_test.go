package objectstore_test

import (
	"testing"

	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
)

func TestDirectory(t *testing.T) {
	objectstoretest.Run(t, objectstoretest.Subject{
		Open: func(t *testing.T, o objectstore.Options) objectstore.Store {
			return open(t, "file://"+t.TempDir(), o)
		},
		Found: objectstore.Capabilities{Conditional: true, ListsWrites: true, MayDelete: true},
	})
}

func TestS3(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		for name, locked := range map[string]bool{"plain": false, "locked": true} {
			t.Run(server.Name+" "+name, func(t *testing.T) {
				objectstoretest.Run(t, objectstoretest.Subject{
					Open: func(t *testing.T, o objectstore.Options) objectstore.Store {
						o.Getenv = server.Environment("").Getenv
						return open(t, "s3://"+server.Bucket(t, locked)+"/some/prefix", o)
					},
					Locks: locked,
					Found: objectstore.Capabilities{
						Conditional: true, Checksums: true, Metadata: true, ListsWrites: true, MayDelete: true,
						Versioned: locked, Lock: locked,
					},
				})
			})
		}
	}
}

func open(t *testing.T, location string, o objectstore.Options) objectstore.Store {
	t.Helper()
	s, err := objectstore.Open(t.Context(), location, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
