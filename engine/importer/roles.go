package importer

import (
	"slices"
	"strings"
)

// The roles of the source are not here. What an entry says of them is mapped:
// the owner of a thing is the new owner; everybody (PUBLIC) stays everybody;
// what another role was granted is left out; a policy for another role is left
// out when it shows rows, and for everybody when it hides them. Whatever is misread here can do no more than the new owner
// can, who executes it.

// roleMap maps roles, and counts what it had to leave out.
type roleMap struct {
	owner string         // the new one
	lost  map[string]int // grants left out, by role
}

func newRoleMap(owner string) *roleMap {
	return &roleMap{owner: owner, lost: map[string]int{}}
}

// grants maps statements GRANT, REVOKE and ALTER DEFAULT PRIVILEGES about
// something of owner's, and leaves out everything else.
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

// policy maps the roles of a statement CREATE POLICY, which stand before its
// expressions, and returns those that are not here. No role sees rows
// that it could not see in the source: a permissive policy is for the roles that
// remain, and "" when none does; a restrictive one is for everybody then.
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
		roles, lost = "PUBLIC", nil // which are all
	case len(lost) > 0 && isRestrictive(tokens[:to]):
		roles = "PUBLIC"
	case !own:
		return "", lost
	}
	return sql[:tokens[to].start] + "TO " + roles + rest, lost
}

// isRestrictive reports whether what stands before a policy's roles makes it
// one that takes rows away. AS is reserved: a name that reads so is quoted.
func isRestrictive(tokens []token) bool {
	at := slices.IndexFunc(tokens, func(t token) bool { return t.is("AS") })
	return at >= 0 && at+1 < len(tokens) && tokens[at+1].is("RESTRICTIVE")
}

func (m *roleMap) ownerToken() token { return token{text: quoteName(m.owner)} }

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
