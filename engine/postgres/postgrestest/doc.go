// Package postgrestest lets tests run real PostgreSQL. PostgreSQL refuses to run
// as root, and tests run both as root and as ordinary users:
//
//	func TestMain(m *testing.M) { postgrestest.Main(m) }
//
// gives up root in the test's own process, gives the run its own temporary
// directory, and fails the run if it leaves a PostgreSQL process behind.
// [Binaries] finds PostgreSQL by the product's own search, [Instance] starts a
// throw-away database as the product runs it, and [NewCluster] a bare PostgreSQL.
// Both copy a data directory that is prepared once per test binary. Without
// PostgreSQL tests fail; they never skip.
//
// As root, a test cannot read files of a checkout in a directory closed to other
// users once Main has begun: embed what a test needs.
package postgrestest
