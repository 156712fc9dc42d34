// Command benchtable reads what `go test -bench` prints, and makes a table of
// how holdfast compares with what was measured beside it. It prints the table
// and keeps it in the directory it is given, by date and processor.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/rounds"
)

func main() {
	dir := flag.String("dir", "testdata/bench", "where the table is kept")
	command := flag.String("command", "", "what makes such a table, for its head")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *dir, *command); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, dir, command string) error {
	// Benchmarks take minutes: whoever waits sees them come.
	r, err := read(io.TeeReader(in, os.Stderr))
	if err != nil {
		return err
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("a benchmark failed: %s", strings.Join(r.failed, ", "))
	}
	rows := r.rows()
	if len(rows) == 0 {
		return errors.New("no benchmark compared anything")
	}
	table := head(r, command, time.Now()) + render(rows)
	if doubtful := untrusted(rows); len(doubtful) > 0 {
		table += "\nNot reliable, since an arm compared with itself is not 1: " + strings.Join(doubtful, "; ") + ".\n"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, fileName(r.cpu, time.Now()))
	if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\nkept in %s\n", table, path)
	return err
}

// head says where and how the figures were taken.
func head(r *results, command string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Compared with its peers, %s\n\n", now.Format(time.DateOnly))
	fmt.Fprintf(&b, "`%s` on %s, %d processors, %s/%s, %s", command, r.cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if version, err := exec.Command("uname", "-r").Output(); err == nil {
		fmt.Fprintf(&b, ", kernel %s", strings.TrimSpace(string(version)))
	}
	b.WriteString(".\nEach is the median of the ratios of at least " + strconv.Itoa(rounds.Least) + " rounds, in which all were measured in random order.\n" +
		"\"" + rounds.Itself + "\" is ours measured a second time: a difference within its range means nothing.\n")
	if len(r.peers) > 0 {
		fmt.Fprintf(&b, "Peers: %s.\n", strings.Join(r.peers, "; "))
	}
	return b.String() + "\n"
}

var unsafeInName = regexp.MustCompile(`[^a-z0-9]+`)

func fileName(cpu string, now time.Time) string {
	name := strings.Trim(unsafeInName.ReplaceAllString(strings.ToLower(cpu), "-"), "-")
	return fmt.Sprintf("%s-%s-%dx.md", now.Format(time.DateOnly), name, runtime.NumCPU())
}
