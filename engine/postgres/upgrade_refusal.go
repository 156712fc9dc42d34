package postgres

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"holdfast/engine/model"
)

// explain returns the error of a pg_upgrade that failed: what the new version refuses,
// from the files that pg_upgrade left, or else its output.
func (u Upgrade) explain(cause error, old oldCluster) error {
	found := u.refusals(old)
	if len(found) == 0 {
		return &model.Error{Code: model.CodeConflict, Err: cause, Message: "pg_upgrade failed: " + u.brief(cause.Error())}
	}
	return &model.Error{
		Code: model.CodeConflict, Err: cause,
		Message: fmt.Sprintf("PostgreSQL %d refuses parts of the database: %s; drop or change them, and create them again after the upgrade",
			u.To.Bin.Major, firstOf(found)),
	}
}

// brief returns the lines of pg_upgrade's output that say why it failed, without paths.
func (u Upgrade) brief(output string) string {
	output = strings.NewReplacer(u.From.Dir+"/", "", u.To.Dir+"/", "").Replace(output)
	var kept []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !routine.MatchString(line) {
			kept = append(kept, line)
		}
	}
	return firstOf(kept)
}

var (
	// routine matches the lines of pg_upgrade's output that do not say why it failed, and its advice for who runs it by hand.
	routine = regexp.MustCompile(`^(.*\sok|-+|\*failure\*|Performing .*|Failure, exiting|If (you|pg_upgrade) .*|(the )?new cluster before .*|` +
		`Consult .*|the probable cause .*|the ".old" suffix .*|Because "link" mode .*|started once .*)$`)
	// tocEntry is how pg_restore names the object of an error: "from TOC entry 218;
	// 1259 16446 VIEW old app".
	tocEntry = regexp.MustCompile(`^pg_restore: (?:from|while [A-Z ]+:\s*from)? ?TOC entry \d+; \d+ \d+ (.+)$`)
	// failed matches an error of the server. Other lines of the logs have verifiers of
	// passwords.
	failed = regexp.MustCompile(`(?:ERROR|FATAL): +(.+)$`)
)

// The bounds of what is read of pg_upgrade's files, in which a tenant's names and definitions can have any length.
const (
	maxRefusalLine = 4 << 10 // bytes
	maxRefusals    = 10_000  // beyond which they are not counted
)

// refusals returns what the files in pg_upgrade's output name: a list of objects for
// each of its checks that failed, and the errors of the new server.
func (u Upgrade) refusals(old oldCluster) (found []string) {
	add := func(refusal string) {
		if len(found) < maxRefusals {
			found = append(found, refusal)
		}
	}
	for _, path := range u.outputs("*.txt") {
		check := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".txt"), "_", " ")
		where := ""
		eachLine(path, func(line string) {
			line = strings.TrimSpace(line)
			if database, names := strings.CutPrefix(line, "In database: "); names {
				if check != librariesCheck {
					where = old.beside(database)
				}
			} else if line != "" && line != "Database: "+u.Database {
				add(check + ": " + line + where)
			}
		})
	}
	for _, path := range append(u.outputs("log/pg_upgrade_utility.log"), u.outputs("log/pg_upgrade_dump_*.log")...) {
		oid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "pg_upgrade_dump_"), ".log")
		for _, line := range serverErrors(path) {
			add(line + old.beside(old.databases[oid]))
		}
	}
	return found
}

// eachLine calls do with each line of a file, without its end and without what is beyond maxRefusalLine.
func eachLine(path string, do func(line string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxRefusalLine)
	for rest := false; ; {
		line, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if !rest {
			do(strings.ToValidUTF8(string(line), ""))
		}
		rest = more
	}
}

// librariesCheck is the check whose file names databases after what is wrong; all others name them before.
const librariesCheck = "loadable libraries"

// beside says in which database an object is, if it is not the tenant's own.
func (old oldCluster) beside(database string) string {
	if database == "" || database == old.tenant.database {
		return ""
	}
	return " in the database " + database
}

// serverErrors returns the errors in a log of psql or pg_restore.
func serverErrors(path string) (found []string) {
	object := ""
	eachLine(path, func(line string) {
		if m := tocEntry.FindStringSubmatch(line); m != nil {
			object = m[1] + ": "
		}
		if m := failed.FindStringSubmatch(line); m != nil && len(found) < maxRefusals {
			found = append(found, m[1])
		}
	})
	for i := range found {
		found[i] = object + found[i]
	}
	return found
}

// outputs returns the files of pg_upgrade's output that match a pattern.
func (u Upgrade) outputs(pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(u.To.Dir, outputDir, "*", pattern))
	return found
}

// firstOf joins items for a message, a few of many.
func firstOf(items []string) string {
	return firstLines(strings.Join(items, "\n"))
}
