package importer

import (
	"slices"
	"testing"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string][]string{
		"":                  nil,
		" a;\n;b c ":        {"a", "b c"},
		`x ';'';'; y ";"""`: {`x ';'';'`, `y ";"""`},
		`E'\';' ; b`:        {`E'\';'`, "b"},
		`fe'\'; b`:          {`fe'\'`, "b"},
		"$a$;$$;$a$; b":     {"$a$;$$;$a$", "b"},
		"a$b; c$b":          {"a$b", "c$b"},
		"$1; 'open;":        {"$1", "'open;"},
		`$$;`:               {"$$;"},
	} {
		if got := statements(sql); !slices.Equal(got, want) {
			t.Errorf("%s: %q", sql, got)
		}
	}
}
