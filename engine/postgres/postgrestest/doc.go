// Package postgrestest lets tests run real PostgreSQL. PostgreSQL refuses to
// run as root, and tests are run as root as well as by ordinary users:
//
//	func TestMain(m *testing.M) { postgrestest.Main(m) }
//
// gives up root in the test's own process, gives the run a temporary directory
// of its own, and fails the run when it leaves a PostgreSQL process behind.
// [Binaries] finds PostgreSQL by the product's own search, [Instance] starts a
// throw-away database. Without PostgreSQL tests fail; they never skip.
//
// As root, the files of a test are out of reach once Main has begun when the
// checkout lies in a directory closed to others: embed what a test needs.
package postgrestest
