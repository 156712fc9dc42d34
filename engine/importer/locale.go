package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// locale is how a database sorts text and knows letters where nothing names a
// collation.
type locale struct {
	Provider       string // c for the C library, i for ICU, b for PostgreSQL itself
	Collate, Ctype string // of the C library
	Name           string // of the two others
}

// localeOf asks a database. Servers before 15 know the C library alone, and
// what the name of the others is called has changed since.
func localeOf(ctx context.Context, conn *pgx.Conn) (locale, error) {
	rows, _ := conn.Query(ctx, `select coalesce(j->>'datlocprovider', 'c'), j->>'datcollate', j->>'datctype', coalesce(j->>'datlocale', j->>'daticulocale', '')
		from (select to_jsonb(d) j from pg_database d where datname = current_database()) x`)
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[locale])
	if err != nil {
		return l, fmt.Errorf("read locale: %w", err)
	}
	return l, nil
}

// order names what text is sorted by.
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

// letters names by what capital and small letters are told. Most locales of the
// C library agree in that.
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

// compareLocales warns of what will be different where locales are.
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
