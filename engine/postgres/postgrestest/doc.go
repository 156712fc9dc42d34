// Package postgrestest lets tests run real PostgreSQL. PostgreSQL refuses to
// run as root, and tests are run as root as well as by ordinary users:
//
//	func TestMain(m *testing.M) { postgrestest.Main(m) }
//
// gives up root in the test's own process, gives the run a temporary directory
// of its own, and fails the run when it leaves a PostgreSQL process behind.
// [Binaries] finds PostgreSQL by the product's own search, [Instance] starts a
// throw-away database as the product runs it, [NewCluster] a bare PostgreSQL. Both
// copy a data directory that is prepared once for each test binary. Without PostgreSQL tests fail; they never skip.
//
// As root, a test cannot read files of the checkout once Main has begun if the
// checkout is in a directory closed to other users: embed what a test needs.
package postgrestest
