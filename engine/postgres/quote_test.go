package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// nasty are texts that break careless quoting.
func nasty() []string {
	return []string{
		"plain", "two words", `it's`, `''`, `back\slash`, `\'`, `ends in \`, "tab\there", `"quoted"`, `""`, "#comment", "a,b",
		"all", "sameuser", "samerole", "replication", "+group", "@file", "größe 漢字 😀", "= 1", "$user", "*", " ", "%m", "a=b;c",
	}
}

func FuzzQuoteConf(f *testing.F) {
	for _, s := range append(nasty(), "line\nbreak", "\r", "\x01\x7f", "", "nul\x00", "\xff") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted, err := quoteConf(s)
		if sayable := utf8.ValidString(s) && !strings.Contains(s, "\x00"); sayable != (err == nil) {
			t.Fatalf("quoteConf(%q): error %v", s, err)
		}
		if err != nil {
			return
		}
		name, value, err := parseConfLine("x = " + quoted)
		if err != nil || name != "x" || value != s {
			t.Errorf("%q was written %s and read %q, %v", s, quoted, value, err)
		}
	})
}

// parseConfLine reads one line by the grammar of guc-file.l (ID EQUALS STRING
// EOL) and GUC's DeescapeQuotedString.
func parseConfLine(line string) (name, value string, err error) {
	name, rest, found := strings.Cut(line, " = ")
	if !found || !strings.HasPrefix(rest, "'") || strings.Contains(rest, "\n") {
		return "", "", errors.New("not a setting")
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\'' && i+1 < len(rest) && rest[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\'':
			if i != len(rest)-1 {
				return "", "", fmt.Errorf("text after the value: %q", rest[i+1:])
			}
			return name, b.String(), nil
		case c == '\\' && i+1 < len(rest):
			i++
			if rest[i] < '0' || rest[i] > '7' {
				b.WriteByte(rest[i])
				break
			}
			end := i
			for end < len(rest) && end < i+3 && rest[end] >= '0' && rest[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(rest[i:end], 8, 8)
			b.WriteByte(byte(n))
			i = end - 1
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("no end of the value")
}

func FuzzQuoteHBA(f *testing.F) {
	for _, s := range append(nasty(), "line\nbreak", "/regex", "", "nul\x00", "\xff", strings.Repeat("x", 300)) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted, err := quoteHBA(s)
		if err != nil {
			if !strings.ContainsAny(s, "\x00\r\n") && s != "" && s[0] != '/' && len(s) <= longestHBAToken && utf8.ValidString(s) {
				t.Errorf("quoteHBA(%q): %v", s, err)
			}
			return
		}
		tokens := parseHBALine("x " + quoted + ",y z")
		if len(tokens) != 4 || tokens[1] != (hbaToken{s, true}) || tokens[2] != (hbaToken{"y", false}) {
			t.Errorf("%q was written %s and read %v", s, quoted, tokens)
		}
		if strings.HasPrefix(s, "/") {
			t.Errorf("%q is a regular expression to PostgreSQL 16", s)
		}
	})
}

type hbaToken struct {
	text   string
	quoted bool // begins with a quote: no keyword, role or file
}

// parseHBALine splits a line as hba.c's next_token does.
func parseHBALine(line string) []hbaToken {
	var tokens []hbaToken
	for i := 0; i < len(line); {
		for i < len(line) && (strings.IndexByte(" \t\n\r,", line[i]) >= 0) {
			i++
		}
		var b []byte
		inQuote, wasQuote, sawQuote, initial := false, false, false, false
		for ; i < len(line) && (inQuote || strings.IndexByte(" \t\n\r", line[i]) < 0); i++ {
			c := line[i]
			if c == '#' && !inQuote {
				i = len(line)
				break
			}
			if c == ',' && !inQuote {
				i++
				break
			}
			if c != '"' || wasQuote {
				b = append(b, c)
			}
			wasQuote = inQuote && c == '"' && !wasQuote
			if c == '"' {
				inQuote = !inQuote
				sawQuote = true
				initial = initial || len(b) == 0
			}
		}
		if sawQuote || len(b) > 0 {
			tokens = append(tokens, hbaToken{string(b), initial})
		}
	}
	return tokens
}
