package postgres

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// errUnquotable is the reason why a text cannot stand in a PostgreSQL
// configuration file, however it is quoted.
var errUnquotable = errors.New("cannot be written in a PostgreSQL configuration file")

// quoteConf writes s as a value of postgresql.conf, by the grammar of
// PostgreSQL's guc-file.l: single quotes, doubled within; backslash escapes
// are read back by DeescapeQuotedString, so control characters can be said in
// octal. Only NUL and bytes that are not UTF-8 cannot stand there.
func quoteConf(s string) (string, error) {
	if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		return "", fmt.Errorf("%q %w", s, errUnquotable)
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			b.WriteString("''")
		case c == '\\':
			b.WriteString(`\\`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String(), nil
}

// longestHBAToken is what every supported major accepts: the tokenizer of
// PostgreSQL 15 has a buffer of MAX_TOKEN (256) bytes.
const longestHBAToken = 250

// quoteHBA writes s as one literal token of pg_hba.conf or pg_ident.conf, by
// the grammar of PostgreSQL's hba.c (next_token): in double quotes, doubled
// within, so that keywords (all, sameuser, replication), +role and @file
// mean nothing special. There are no escapes: a line break cannot be said. Nor can
// a leading slash, which since PostgreSQL 16 begins a regular expression even
// within quotes.
func quoteHBA(s string) (string, error) {
	if s == "" || s[0] == '/' || len(s) > longestHBAToken || strings.ContainsAny(s, "\x00\n\r") || !utf8.ValidString(s) {
		return "", fmt.Errorf("%q %w", s, errUnquotable)
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`, nil
}
