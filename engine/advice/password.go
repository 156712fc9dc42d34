package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// changedPassword reports databases whose owner's password was changed by SQL: their
// connection details lack the password.
func changedPassword(_ Facts, db Database) []model.Recommendation {
	if db.OwnPassword == nil {
		return nil
	}
	return []model.Recommendation{{
		Code: "password_changed_outside", Severity: model.SeverityWarning, Category: model.CategorySecurity,
		Title: "The password was changed by SQL",
		Message: fmt.Sprintf("The password of the user %s of %s was changed by SQL. The appliance does not know it and cannot hand it out; "+
			"it stays in force until a rotation sets a new one.", db.Owner, db.Name),
		Resource: db.resource(),
		Evidence: map[string]any{"user": db.Owner, "noticed_at": db.OwnPassword.NoticedAt},
		Action:   call("POST", db.Database, "/rotate-password", nil),
		Caution:  "Clients that use the password that was set by SQL need the new one.",
	}}
}
