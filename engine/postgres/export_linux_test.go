package postgres

// ProcessesOf is processesOf.
var ProcessesOf = processesOf

// LoginsOf returns which processes of a server may be incomplete logins, if none of them had a title when they were
// listed, as in the moment after its start.
func LoginsOf(dir string) []int {
	l := logins{dir: dir, pids: processesOf(dir)}
	l.forgetGone()
	return l.pids
}
