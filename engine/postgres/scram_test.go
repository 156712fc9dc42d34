package postgres

import (
	"encoding/base64"
	"strings"
	"testing"

	"holdfast/engine/model"
)

// The exchange of RFC 7677, section 3, has this salt and password; its server
// signature and client proof follow from these two keys, which are also what
// PostgreSQL stores for them.
func TestScramVerifierOfRFC7677(t *testing.T) {
	t.Parallel()
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	got, err := scramVerifierWith(model.NewSecret("pencil"), salt, scramIterations)
	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestScramVerifierHasASaltOfItsOwn(t *testing.T) {
	t.Parallel()
	a, _ := scramVerifier(model.NewSecret("x"))
	b, _ := scramVerifier(model.NewSecret("x"))
	if a == b || strings.ContainsAny(a, `'\"`) {
		t.Errorf("%s and %s", a, b)
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for password, portable := range map[string]bool{
		"plain-ASCII 'with' \"quotes\" \\ and $": true,
		"größe Ωμέγα 漢字 привет":                  true,
		"naïve 😀":                                true,
		"e\u0301":                                false, // decomposed é
		"ﬁne":                                    false, // ligature
		"ｆｕｌｌ":                                   false, // full width
		"no\u00a0break":                          false,
		"soft\u00adhyphen":                       false,
		"zero\u200bwidth":                        false,
		"new\nline":                              false,
		"H₂O":                                    false,
	} {
		if err := CheckPassword("password", model.NewSecret(password)); (err == nil) != portable {
			t.Errorf("%q: %v", password, err)
		}
	}
}
