// Package sandbox gives each test of a Go program an empty or migrated PostgreSQL database
// of its own, in about 10 ms. It imports only the standard library and package wire, which
// does the same.
//
//	func TestOrders(t *testing.T) {
//		t.Parallel()
//		db := sandbox.New(t, sandbox.Template{Hash: sandbox.Hash(migrations), Fill: migrate})
//		pool, err := pgxpool.New(t.Context(), db.URL)
//		…
//	}
//
// The databases are in a server that holdfast runs for the purpose. Under `holdfast run --
// go test ./...` it is the one of the command; otherwise all tests of this user share
// one, for which a private appliance is started if none runs. For that the program
// `holdfast` is needed: it is looked up in PATH, unless HOLDFAST_BINARY names it.
//
// A template is filled once for each hash, also among the processes of `go test ./...`: one
// fills it, and the others wait. The database of a test is a copy of it. It is dropped when
// the test has ended, or when its process dies.
package sandbox
