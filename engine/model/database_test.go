package model

import (
	"strings"
	"testing"
)

func TestValidateDatabaseName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "Z", "app", "My_App-2", "a" + strings.Repeat("9", 62), "post-gres", "postgres2", "temp", "select"} {
		if err := ValidateDatabaseName("name", name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, tt := range []struct{ name, says string }{
		{"", "is required"},
		{"a" + strings.Repeat("9", 63), "63"},
		{"1a", "begin with a letter"},
		{"_a", "begin with a letter"},
		{"-a", "begin with a letter"},
		{"a b", "letters"},
		{"a.b", "letters"},
		{`a"b`, "letters"},
		{"a'b", "letters"},
		{"a;drop database b", "letters"},
		{"a\n", "letters"},
		{"a\x00", "letters"},
		{"ä", "begin with a letter"},
		{"аpp", "begin with a letter"}, // Cyrillic
		{"postgres", "PostgreSQL's own"},
		{"POSTGRES", "PostgreSQL's own"},
		{"template0", "PostgreSQL's own"},
		{"template1", "PostgreSQL's own"},
		{"Template_mine", "PostgreSQL's own"},
	} {
		wantInvalid(t, ValidateDatabaseName("name", tt.name), "name: ", tt.says)
	}
}

func TestValidateDatabaseUser(t *testing.T) {
	t.Parallel()
	for _, name := range []string{DefaultOwner, "a", "_", "_app", "a1_", strings.Repeat("a", 63), "pgadmin", "readonly", "_readonly_", "user"} {
		if err := ValidateDatabaseUser("db_user", name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, tt := range []struct{ name, says string }{
		{"", "begin with"},
		{strings.Repeat("a", 64), "63"},
		{"App", "lower-case"},
		{"1a", "begin with"},
		{"a-b", "lower-case"},
		{"a b", "lower-case"},
		{`a"`, "lower-case"},
		{"a\n", "lower-case"},
		{"a\x00", "lower-case"},
		{"all\nhost", "lower-case"},
		{"+app", "begin with"}, // a group in pg_hba.conf
		{"é", "begin with"},
		{"pg_read_all_data", "reserved"},
		{"pg_", "reserved"},
		{"postgres", "reserved"},
		{"public", "reserved"},
		{"none", "reserved"},
		{"holdfast", "reserved"},
		{"holdfast_replication", "reserved"},
		{"app" + ReadOnlySuffix, "reserved"},
		{ReadOnlySuffix, "reserved"},
	} {
		wantInvalid(t, ValidateDatabaseUser("db_user", tt.name), "db_user: ", tt.says)
	}
}

func TestReadOnlyUser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ owner, want string }{
		{"app", "app_readonly"},
		{strings.Repeat("a", 54), strings.Repeat("a", 54) + "_readonly"},
		{strings.Repeat("a", 55), strings.Repeat("a", 54) + "_readonly"},
		{strings.Repeat("a", 63), strings.Repeat("a", 54) + "_readonly"},
	} {
		got := ReadOnlyUser(tt.owner)
		if got != tt.want {
			t.Errorf("ReadOnlyUser(%q) is %q", tt.owner, got)
		}
		// No owner can have the name of a read-only role.
		if ValidateDatabaseUser("db_user", got) == nil || len(got) > 63 {
			t.Errorf("%q could be an owner, or is too long", got)
		}
	}
}
