package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// locale is how a database sorts and classifies text that has no explicit collation.
type locale struct {
	Provider       string // c for libc, i for ICU, b for builtin
	Collate, Ctype string // of libc
	Name           string // of the other two
}

// localeOf reads a database's locale. Servers before 15 support libc alone, and the column with the name of the others
// has been renamed since.
func localeOf(ctx context.Context, conn *pgx.Conn) (locale, error) {
	rows, _ := conn.Query(ctx, `select coalesce(j->>'datlocprovider', 'c'), j->>'datcollate', j->>'datctype', coalesce(j->>'datlocale', j->>'daticulocale', '')
		from (select to_jsonb(d) j from pg_database d where datname = current_database()) x`)
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[locale])
	if err != nil {
		return l, fmt.Errorf("read locale: %w", err)
	}
	return l, nil
}

// order names the order that text is sorted by.
func (l locale) order() string {
	switch {
	case l.Provider == "i":
		return "ICU's " + l.Name
	case l.Provider == "b", isC(l.Collate), isCUTF8(l.Collate):
		return "code points"
	default:
		return l.Collate
	}
}

// letters names the rules that distinguish upper and lower case. Most libc locales agree on them.
func (l locale) letters() string {
	name, turkic := l.Name, false
	if l.Provider == "c" {
		name = l.Ctype
		lower := strings.ToLower(name)
		turkic = strings.HasPrefix(lower, "tr") || strings.HasPrefix(lower, "az")
	}
	switch {
	case l.Provider == "i":
		return "ICU's " + name
	case isC(name):
		return "ASCII"
	case turkic, l.Provider == "b" && !isCUTF8(name):
		return name
	default:
		return "Unicode"
	}
}

func isC(name string) bool { return name == "C" || name == "POSIX" }

func isCUTF8(name string) bool { return name == "C.UTF-8" || name == "C.utf8" || name == "C.UTF8" }

// compareLocales warns about what changes because the locales differ.
func (s *Session) compareLocales(ctx context.Context, target *pgx.Conn) error {
	there, err := localeOf(ctx, s.conn)
	if err != nil {
		return sourceError{err}
	}
	here, err := localeOf(ctx, target)
	if err != nil {
		return err
	}
	if a, b := there.order(), here.order(); a != b {
		s.account.Say(model.ImportWarning, fmt.Sprintf("text is sorted by %s in the source and by %s here: ORDER BY, comparisons and ranges of text "+
			`may give something else; where that matters name a collation in the query, such as COLLATE "en-x-icu"`, a, b))
	}
	if a, b := there.letters(), here.letters(); a != b {
		s.account.Say(model.ImportWarning, fmt.Sprintf("capital and small letters are told by %s in the source and by %s here: upper, lower, ILIKE, "+
			"regular expressions and text search may treat letters such as É, ß and ı differently, and a unique index over lower() find duplicates", a, b))
	}
	return nil
}
