package importer

import (
	"slices"
	"strings"
)

// The roles of the source do not exist here. Entries that name them are mapped: an object's owner becomes the new
// owner; PUBLIC stays PUBLIC; grants to other roles are left out; a policy for another role is left out if it is
// permissive, and applies to PUBLIC if it is restrictive. Anything misread here can do no more than the new owner can,
// who executes it.

// roleMap maps roles, and counts the grants that it left out.
type roleMap struct {
	owner string         // the new one
	lost  map[string]int // grants left out, by role
}

func newRoleMap(owner string) *roleMap {
	return &roleMap{owner: owner, lost: map[string]int{}}
}

// grants maps GRANT, REVOKE and ALTER DEFAULT PRIVILEGES statements about an object of owner's, and drops all others.
func (m *roleMap) grants(sql, owner string) string {
	var kept []string
	for _, statement := range split(scan(sql)) {
		if text, ok := m.grant(statement, owner); ok {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, ";\n")
}

func (m *roleMap) grant(statement []token, owner string) (string, bool) {
	if !statement[0].is("GRANT") && !statement[0].is("REVOKE") && !statement[0].is("ALTER") {
		return "", false // SET SESSION AUTHORIZATION around grants by others
	}
	at := slices.IndexFunc(statement, func(t token) bool { return t.is("ROLE") })
	if statement[0].is("ALTER") && at >= 0 && at+1 < len(statement) {
		owner = statement[at+1].name()
		statement[at+1] = m.ownerToken()
	}
	to := len(statement) - 1
	for to >= 0 && !statement[to].is("TO") && !statement[to].is("FROM") {
		to--
	}
	if to < 0 || to+1 >= len(statement) {
		return "", false
	}
	switch grantee := statement[to+1]; {
	case grantee.is("PUBLIC"):
	case grantee.name() == owner, grantee.name() == m.owner:
		statement[to+1] = m.ownerToken()
	default:
		m.lost[grantee.name()]++
		return "", false
	}
	return join(statement), true
}

// policy maps the roles of a CREATE POLICY statement, which come before its expressions, and returns the roles that do
// not exist here. No role sees rows that it could not see in the source: a permissive policy applies to the remaining
// roles, and is "" if none remain; a restrictive one then applies to PUBLIC.
func (m *roleMap) policy(sql, owner string) (definition string, lost []string) {
	tokens := scan(sql)
	to := slices.IndexFunc(tokens, func(t token) bool { return t.is("TO") || t.text == "(" })
	if to < 0 || !tokens[to].is("TO") {
		return sql, nil
	}
	public, own, end := false, false, to+1
	for ; end < len(tokens) && !tokens[end].is("USING") && !tokens[end].is("WITH") && tokens[end].text != ";"; end++ {
		switch role := tokens[end]; {
		case role.text == ",":
		case role.is("PUBLIC"):
			public = true
		case role.name() == owner, role.name() == m.owner:
			own = true
		default:
			lost = append(lost, role.name())
		}
	}
	rest := ""
	if end < len(tokens) {
		rest = " " + sql[tokens[end].start:]
	}
	roles := m.ownerToken().text
	switch {
	case public:
		roles, lost = "PUBLIC", nil // PUBLIC includes them
	case len(lost) > 0 && isRestrictive(tokens[:to]):
		roles = "PUBLIC"
	case !own:
		return "", lost
	}
	return sql[:tokens[to].start] + "TO " + roles + rest, lost
}

// isRestrictive reports whether the tokens before a policy's roles make it restrictive. AS is reserved: an identifier
// of that name is quoted.
func isRestrictive(tokens []token) bool {
	at := slices.IndexFunc(tokens, func(t token) bool { return t.is("AS") })
	return at >= 0 && at+1 < len(tokens) && tokens[at+1].is("RESTRICTIVE")
}

func (m *roleMap) ownerToken() token { return token{text: quoteName(m.owner)} }

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
