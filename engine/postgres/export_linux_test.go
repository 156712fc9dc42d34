package postgres

// Functions for tests of the package.
var (
	ProcessesOf = processesOf
	ChildrenOf  = childrenOf
	Title       = title
)

// LoginsOf returns which processes of a server may be incomplete logins, if none of them had a title when they were
// listed, as in the moment after its start.
func LoginsOf(dir string) []int {
	l := logins{dir: dir, pids: processesOf(dir)}
	l.forgetGone()
	return l.pids
}
