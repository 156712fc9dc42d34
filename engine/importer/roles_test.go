package importer

import (
	"strings"
	"testing"
)

func TestRoleMapGrants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ owner, in, want string }{
		{"boss", "GRANT SELECT ON TABLE public.t TO PUBLIC;", `GRANT SELECT ON TABLE public . t TO PUBLIC`},
		{"boss", "GRANT SELECT ON TABLE public.t TO alice;", ""},
		{"boss", "GRANT SELECT ON TABLE public.t TO \"PUBLIC\";", ""}, // a role named PUBLIC
		{
			"boss", "REVOKE ALL ON TABLE public.t FROM boss;\nGRANT SELECT ON TABLE public.t TO boss;",
			"REVOKE ALL ON TABLE public . t FROM \"app\";\nGRANT SELECT ON TABLE public . t TO \"app\"",
		},
		{"a;b", `GRANT SELECT("x TO y",b) ON TABLE "s;""d".t TO "a;b" WITH GRANT OPTION;`, `GRANT SELECT ( "x TO y" , b ) ON TABLE "s;""d" . t TO "app" WITH GRANT OPTION`},
		{"boss", "SET SESSION AUTHORIZATION alice;\nGRANT ALL ON SCHEMA s TO bob;\nRESET SESSION AUTHORIZATION;", ""},
		{"boss", "REVOKE ALL ON FUNCTION public.f(a integer, b \"TO\") FROM PUBLIC;", `REVOKE ALL ON FUNCTION public . f ( a integer , b "TO" ) FROM PUBLIC`},
		{"boss", "ALTER DEFAULT PRIVILEGES FOR ROLE boss IN SCHEMA s GRANT SELECT ON TABLES  TO PUBLIC;", `ALTER DEFAULT PRIVILEGES FOR ROLE "app" IN SCHEMA s GRANT SELECT ON TABLES TO PUBLIC`},
		{"boss", "ALTER DEFAULT PRIVILEGES FOR ROLE \"x y\" REVOKE ALL ON TABLES  FROM \"x y\";", `ALTER DEFAULT PRIVILEGES FOR ROLE "app" REVOKE ALL ON TABLES FROM "app"`},
		{"boss", "DROP TABLE t; GRANT", ""},
		{"boss", `GRANT ALL ON TABLE "unclosed TO PUBLIC;`, ""},
	} {
		got := newRoleMap("app").grants(test.in, test.owner)
		if got != test.want {
			t.Errorf("%s\nis %s\nnot %s", test.in, got, test.want)
		}
	}
}

func TestRoleMapPolicies(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{ // the definition, and the lost roles
		"CREATE POLICY p ON t USING ((owner = 'TO x'));":              {"CREATE POLICY p ON t USING ((owner = 'TO x'));", ""},
		"CREATE POLICY p ON t FOR SELECT TO alice, bob USING (true);": {"", "alice bob"},
		"CREATE POLICY p ON t TO alice":                               {"", "alice"},
		"CREATE POLICY p ON t TO boss, alice USING (true);":           {`CREATE POLICY p ON t TO "app" USING (true);`, "alice"},
		"CREATE POLICY p ON t TO app USING (true);":                   {`CREATE POLICY p ON t TO "app" USING (true);`, ""},
		`CREATE POLICY "AS" ON restrictive TO alice USING (true);`:    {"", "alice"},
		"CREATE POLICY p ON t AS RESTRICTIVE TO alice USING (false);": {"CREATE POLICY p ON t AS RESTRICTIVE TO PUBLIC USING (false);", "alice"},
		"CREATE POLICY p ON t AS RESTRICTIVE TO boss USING (false);":  {`CREATE POLICY p ON t AS RESTRICTIVE TO "app" USING (false);`, ""},
		`CREATE POLICY "a TO b" ON s."TO" AS RESTRICTIVE TO PUBLIC, "x, y" WITH CHECK (f(';'));`: {
			`CREATE POLICY "a TO b" ON s."TO" AS RESTRICTIVE TO PUBLIC WITH CHECK (f(';'));`, "",
		},
	} {
		got, lost := newRoleMap("app").policy(in, "boss")
		if got != want[0] || strings.Join(lost, " ") != want[1] {
			t.Errorf("%s\nis %s\nnot %s; lost: %v", in, got, want[0], lost)
		}
	}
}

// FuzzRoleMap checks that any input yields only statements about privileges, and none for a role that does not exist
// here.
func FuzzRoleMap(f *testing.F) {
	f.Add(`GRANT SELECT ON TABLE "a;b".t TO alice; REVOKE ALL ON t FROM PUBLIC`)
	f.Add(`ALTER DEFAULT PRIVILEGES FOR ROLE "x" GRANT ALL ON TABLES TO "x"`)
	f.Fuzz(func(t *testing.T, sql string) {
		m := newRoleMap("app")
		m.policy(sql, "boss")
		for _, statement := range split(scan(m.grants(sql, "boss"))) {
			if !statement[0].is("GRANT") && !statement[0].is("REVOKE") && !statement[0].is("ALTER") {
				t.Errorf("%q gives %q", sql, join(statement))
			}
			if strings.Contains(join(statement[len(statement)-1:]), `"boss"`) {
				t.Errorf("%q gives %q", sql, join(statement))
			}
		}
	})
}
