package postgres

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// isPostmaster reports whether process pid is the postmaster of the data
// directory dir: it runs a program called postgres, its working directory is dir
// (a postmaster changes to it first), and it is not one of the postmaster's
// children, whose titles begin with "postgres: ".
func isPostmaster(pid int, dir string) bool {
	return servesDir(pid, dir) && !bytes.HasPrefix(procFile(pid, "cmdline"), []byte("postgres: "))
}

// processesOf returns all PostgreSQL processes whose working directory is dir.
func processesOf(dir string) []int {
	return processesWhere(func(pid int) bool { return servesDir(pid, dir) })
}

func processesWhere(is func(pid int) bool) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && is(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isLogger reports whether a PostgreSQL process is the one that writes the log,
// the only process of a server that pg_stat_activity does not show. A client's
// names appear in its process's title, but no title of a client equals this one.
func isLogger(pid int) bool {
	return title(pid) == "postgres: "+clusterName+": logger"
}

// isIncompleteLogin reports whether a PostgreSQL process other than the postmaster is an
// incomplete login: it has no title yet, or one that ends in an activity, where
// no name can appear.
func isIncompleteLogin(pid int) bool {
	title := title(pid)
	if !strings.HasPrefix(title, "postgres: ") {
		return title != "" // otherwise it has ended
	}
	return strings.HasSuffix(title, " authentication") || strings.HasSuffix(title, " initializing")
}

// clientOf returns the address of the client that an incomplete login serves, ""
// if it is unknown. The title ends in "ADDRESS(PORT) authentication": the client
// chooses the names before the address, but not the text after them.
func clientOf(pid int) string {
	fields := strings.Fields(title(pid))
	if len(fields) < 2 {
		return ""
	}
	address, _, _ := strings.Cut(fields[len(fields)-2], "(")
	return address
}

// clientPortOf returns the client's port in the title of a login, 0 if there is none.
func clientPortOf(pid int) int {
	fields := strings.Fields(title(pid))
	if len(fields) < 2 {
		return 0
	}
	_, port, _ := strings.Cut(fields[len(fields)-2], "(")
	n, _ := strconv.Atoi(strings.TrimSuffix(port, ")"))
	return n
}

// isBlocked reports whether a PostgreSQL process is a session of the appliance
// that waits for a lock as it starts. Only the appliance uses the socket.
func isBlocked(pid int, role, database string) bool {
	return title(pid) == "postgres: "+clusterName+": "+role+" "+database+" [local] startup waiting"
}

// isRecovering reports whether a PostgreSQL process is the one that replays WAL as a server starts. A client's names
// appear in its process's title, but are followed by its address.
func isRecovering(pid int) bool {
	activity, is := strings.CutPrefix(title(pid), "postgres: "+clusterName+": startup")
	segment, replays := strings.CutPrefix(activity, " recovering ")
	return is && (activity == "" || replays && !strings.ContainsRune(segment, ' '))
}

// isCheckpointer reports whether a PostgreSQL process is the one that makes checkpoints, likewise.
func isCheckpointer(pid int) bool {
	activity, is := strings.CutPrefix(title(pid), "postgres: "+clusterName+": checkpointer")
	return is && (activity == "" || strings.HasPrefix(activity, " performing ") && strings.HasSuffix(activity, "point"))
}

// childrenOf returns the child processes of a process.
func childrenOf(pid int) (pids []int) {
	for _, field := range strings.Fields(string(procFile(pid, filepath.Join("task", strconv.Itoa(pid), "children")))) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runState returns the state of a process, as proc(5) has it, and for how long it has run on a processor; 0 for one that has
// ended.
func runState(pid int) (state byte, ran time.Duration) {
	stat := string(procFile(pid, "stat"))
	first, _, _ := strings.Cut(string(procFile(pid, "schedstat")), " ")
	nanoseconds, err := strconv.ParseInt(first, 10, 64)
	after := stat[strings.LastIndexByte(stat, ')')+1:]
	if err != nil || len(after) < 2 {
		return 0, 0
	}
	return after[1], time.Duration(nanoseconds)
}

// title returns the title of a process.
func title(pid int) string { return string(bytes.TrimRight(procFile(pid, "cmdline"), "\x00 ")) }

// servesDir compares the directories themselves, not their names: a data
// directory may have been renamed, or be reached through a link.
func servesDir(pid int, dir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil {
		return false // ended, a zombie, or another user's
	}
	// A package upgrade replaces the file under a running server.
	if filepath.Base(strings.TrimSuffix(exe, " (deleted)")) != "postgres" {
		return false
	}
	cwd, err := os.Stat(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	own, err := os.Stat(dir)
	return err == nil && os.SameFile(cwd, own)
}

func procFile(pid int, name string) []byte {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	return data
}
