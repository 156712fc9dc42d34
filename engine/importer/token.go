package importer

import "strings"

// token is a word, a quoted identifier or a symbol of SQL.
type token struct {
	text  string
	start int // in the text it was read from
}

// is reports whether the token is the keyword: pg_dump quotes every identifier that is a keyword.
func (t token) is(keyword string) bool { return strings.EqualFold(t.text, keyword) }

// name returns the identifier that the token denotes.
func (t token) name() string {
	if !strings.HasPrefix(t.text, `"`) {
		return strings.ToLower(t.text)
	}
	return strings.ReplaceAll(strings.TrimSuffix(t.text[1:], `"`), `""`, `"`)
}

// scan tokenizes SQL that consists of identifiers, keywords, numbers and symbols: statements about privileges, and
// policies up to their expressions. An unclosed quote ends with the text.
func scan(sql string) []token {
	var tokens []token
	for i := 0; i < len(sql); {
		length := 1
		switch c := sql[i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
			continue
		case c == '"':
			length = quoted(sql[i:])
		case inWord(c):
			for length < len(sql)-i && inWord(sql[i+length]) {
				length++
			}
		}
		tokens = append(tokens, token{sql[i : i+length], i})
		i += length
	}
	return tokens
}

// quoted returns the length of the quoted identifier at the start of sql.
func quoted(sql string) int {
	for i := 1; i < len(sql); i++ {
		if sql[i] != '"' {
			continue
		}
		if i+1 == len(sql) || sql[i+1] != '"' {
			return i + 1
		}
		i++
	}
	return len(sql)
}

func inWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// split divides tokens into statements, none of them empty.
func split(tokens []token) [][]token {
	var statements [][]token
	first := 0
	for i, t := range tokens {
		if t.text == ";" {
			if i > first {
				statements = append(statements, tokens[first:i])
			}
			first = i + 1
		}
	}
	if first < len(tokens) {
		statements = append(statements, tokens[first:])
	}
	return statements
}

// statements splits SQL of any kind, as pg_dump writes it, into its statements.
func statements(sql string) []string {
	var all []string
	first := 0
	add := func(end int) {
		if text := strings.TrimSpace(sql[first:end]); text != "" {
			all = append(all, text)
		}
		first = end + 1
	}
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == ';':
			add(i)
			i++
		case c == '"':
			i += quoted(sql[i:])
		case c == '\'':
			i += literal(sql[i:], i > 0 && (sql[i-1] == 'E' || sql[i-1] == 'e') && (i == 1 || !inWord(sql[i-2])))
		case c == '$':
			i += dollarQuoted(sql[i:])
		case inWord(c): // a dollar sign within a word starts no quote
			for i < len(sql) && inWord(sql[i]) {
				i++
			}
		default:
			i++
		}
	}
	add(len(sql))
	return all
}

// literal returns the length of the literal at the start of sql.
func literal(sql string, escapes bool) int {
	for i := 1; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] == '\'': // a doubled quote makes two literals, which gives the same result
			return i + 1
		}
	}
	return len(sql)
}

// dollarQuoted returns the length of the dollar-quoted literal at the start of sql, 1 if there is none.
func dollarQuoted(sql string) int {
	end := 1
	for end < len(sql) && sql[end] != '$' && inWord(sql[end]) {
		end++
	}
	if end == len(sql) || sql[end] != '$' {
		return 1
	}
	tag := sql[:end+1]
	if at := strings.Index(sql[len(tag):], tag); at >= 0 {
		return at + 2*len(tag)
	}
	return len(sql)
}

// join writes tokens as SQL.
func join(tokens []token) string {
	words := make([]string, len(tokens))
	for i, t := range tokens {
		words[i] = t.text
	}
	return strings.Join(words, " ")
}
