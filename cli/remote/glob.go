package remote

import (
	"regexp"
	"strings"
)

// target is a parsed argument BUCKET[/KEY]. Everything after the first slash is
// the key, byte for byte.
type target struct {
	bucket string // id or name
	key    string
}

func parseTarget(arg string) (target, error) {
	bucket, key, _ := strings.Cut(arg, "/")
	if bucket == "" {
		return target{}, usagef("%q is not BUCKET/KEY", arg)
	}
	return target{bucket, key}, nil
}

// pattern is a key with wildcards: * matches any characters except a slash, **
// any characters, ? one character except a slash; a backslash escapes a
// wildcard.
type pattern struct {
	prefix string // the literal start of all matching keys
	form   *regexp.Regexp
	wild   bool
}

func parsePattern(text string) pattern {
	var prefix, form strings.Builder
	p := pattern{}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && strings.ContainsRune(`*?\`, rune(text[i+1])):
			i++
			p.literal(&prefix, &form, text[i])
		case strings.HasPrefix(text[i:], "**"):
			i++
			p.wild = true
			form.WriteString(`[\s\S]*`)
		case c == '*':
			p.wild = true
			form.WriteString(`[^/]*`)
		case c == '?':
			p.wild = true
			form.WriteString(`[^/]`)
		default:
			p.literal(&prefix, &form, c)
		}
	}
	p.prefix, p.form = prefix.String(), regexp.MustCompile(`^(?:`+form.String()+`)$`)
	return p
}

// literal adds a literal byte. Non-ASCII bytes go into the form unquoted: they
// are not syntax, and a single byte of a character is not valid text.
func (p *pattern) literal(prefix, form *strings.Builder, c byte) {
	if !p.wild {
		prefix.WriteByte(c)
	}
	if c < 0x80 {
		form.WriteString(regexp.QuoteMeta(string(rune(c))))
		return
	}
	form.WriteByte(c)
}

func (p pattern) matches(key string) bool { return p.form.MatchString(key) }

// folder returns the folder of a pattern: the key up to the last slash before
// any wildcard.
func (p pattern) folder() string { return p.prefix[:strings.LastIndexByte(p.prefix, '/')+1] }
