package postgres

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// errUnquotable means that a text cannot appear in a PostgreSQL configuration
// file, however it is quoted.
var errUnquotable = errors.New("cannot be written in a PostgreSQL configuration file")

// quoteConf quotes s as a value of postgresql.conf, by the grammar of
// PostgreSQL's guc-file.l: single quotes, doubled within. DeescapeQuotedString
// reads backslash escapes, so control characters can be written in octal. Only
// NUL and invalid UTF-8 cannot be written.
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

// longestHBAToken is the token length that every supported major accepts: the
// tokenizer of PostgreSQL 15 has a buffer of MAX_TOKEN (256) bytes.
const longestHBAToken = 250

// quoteHBA quotes s as one literal token of pg_hba.conf or pg_ident.conf, by the
// grammar of PostgreSQL's hba.c (next_token): in double quotes, doubled within,
// so that keywords (all, sameuser, replication), +role and @file have no special
// meaning. There are no escapes, so a line break cannot be written. Nor can a
// leading slash, which since PostgreSQL 16 begins a regular expression even
// within quotes.
func quoteHBA(s string) (string, error) {
	if s == "" || s[0] == '/' || len(s) > longestHBAToken || strings.ContainsAny(s, "\x00\n\r") || !utf8.ValidString(s) {
		return "", fmt.Errorf("%q %w", s, errUnquotable)
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`, nil
}
