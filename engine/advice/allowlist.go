package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// openAllowlist reports databases that anyone may try to log in to.
func openAllowlist(_ Facts, db Database) []model.Recommendation {
	open, others := "", []string{}
	for _, prefix := range db.Allowlist {
		if prefix.Bits() == 0 {
			open = prefix.String()
		} else {
			others = append(others, prefix.String())
		}
	}
	if open == "" {
		return nil
	}
	if len(others) == 0 {
		others = []string{"127.0.0.0/8", "::1/128"}
	}
	return []model.Recommendation{{
		Code: "open_allowlist", Severity: model.SeverityCritical, Category: model.CategorySecurity,
		Title:    "Open to every address",
		Message:  fmt.Sprintf("The allow-list of %s lets every address in: only the password stands between the network and the data.", db.Name),
		Resource: db.resource(),
		Evidence: map[string]any{"entry": open, "other_entries": len(db.Allowlist) - 1},
		Action:   call("PUT", db.Database, "/allowlist", map[string]any{"entries": others}),
		Caution:  "Put in the addresses that need the database: sessions from others end at once.",
	}}
}
