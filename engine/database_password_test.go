package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// connectionDetails returns the connection that the call's key is shown.
func connectionDetails(t *testing.T, a *appliance, id string) databases.Connection {
	t.Helper()
	c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hasAdvice(t *testing.T, a *appliance, code string) bool {
	t.Helper()
	found, err := a.Insight.Recommendations(a.call(model.ActionRecommendationList))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(found, func(r model.Recommendation) bool { return r.Code == code })
}

// logIn opens a session as the user with the password.
func logIn(t *testing.T, c databases.Connection, password string) error {
	t.Helper()
	c.Password, c.PasswordChanged = model.NewSecret(password), false
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err == nil {
		err = conn.Close(t.Context())
	}
	return err
}

func runSQL(t *testing.T, c databases.Connection, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func isRefused(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "28P01"
}

// A password that the owner's role is given by SQL is noticed and reported, and stays in effect through restarts until
// it is rotated.
func TestPasswordChangedBySQL(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	for name, statement := range map[string]string{
		"SCRAM": "alter role app password 'chosen by sql'",
		"md5":   "set password_encryption = 'md5'; alter role app password 'chosen by sql'",
		"none":  "alter role app password null",
	} {
		t.Run(name, func(t *testing.T) {
			stored := connectionDetails(t, a, db.ID)
			runSQL(t, stored, statement)
			c := connectionDetails(t, a, db.ID)
			if !c.PasswordChanged || !c.Password.IsZero() {
				t.Fatalf("changed %v, and a password is shown: %v", c.PasswordChanged, !c.Password.IsZero())
			}
			if !hasAdvice(t, a, "password_changed_outside") {
				t.Error("no recommendation")
			}
			if err := logIn(t, c, "chosen by sql"); (err == nil) != (name == "SCRAM") {
				t.Errorf("before the restart: %v", err)
			}
			if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
				t.Fatal(err)
			}
			if err := logIn(t, c, "chosen by sql"); (err == nil) != (name == "SCRAM") {
				t.Errorf("after the restart: %v", err)
			}
			if err := logIn(t, c, stored.Password.Reveal()); !isRefused(err) {
				t.Errorf("the replaced password came back: %v", err)
			}
			rotated, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, false)
			if err != nil || rotated.Connection.PasswordChanged {
				t.Fatalf("rotate: %v, %v", rotated.Connection.PasswordChanged, err)
			}
			if err := logIn(t, c, rotated.Connection.Password.Reveal()); err != nil {
				t.Errorf("the new password: %v", err)
			}
			if hasAdvice(t, a, "password_changed_outside") {
				t.Error("the recommendation stays")
			}
		})
	}
	t.Run("changed back", func(t *testing.T) {
		stored := connectionDetails(t, a, db.ID)
		runSQL(t, stored, "alter role app password 'chosen by sql'")
		if c := connectionDetails(t, a, db.ID); !c.PasswordChanged {
			t.Fatal("not noticed")
		}
		own := stored
		own.Password = model.NewSecret("chosen by sql")
		runSQL(t, own, "alter role app password '"+stored.Password.Reveal()+"'")
		if c := connectionDetails(t, a, db.ID); c.PasswordChanged || c.Password.Reveal() != stored.Password.Reveal() {
			t.Error("still changed")
		}
	})
}

// A restore and its undo bring back data, not passwords: the password that the owner has set by SQL stays in effect,
// although the backup has the earlier one.
func TestPasswordChangedBySQLSurvivesRestoreAndUndo(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, stored := a.createDatabase(t, "shop")
	backup := a.backUp(t, db.ID)
	runSQL(t, stored, "create table later (n int)", "alter role app password 'chosen by sql'")
	inForce := func(when string) {
		t.Helper()
		c := connectionDetails(t, a, db.ID)
		if err := logIn(t, c, "chosen by sql"); err != nil || !c.PasswordChanged {
			t.Errorf("%s: changed %v, %v", when, c.PasswordChanged, err)
		}
		if err := logIn(t, c, stored.Password.Reveal()); !isRefused(err) {
			t.Errorf("%s: the replaced password came back: %v", when, err)
		}
	}
	inForce("before")
	a.restore(t, db.ID, backup.ID)
	inForce("after the restore")
	a.undo(t, db.ID)
	inForce("after the undo")
}

// The read-only role may not choose its password: others use it, too.
func TestReaderPasswordIsPutBack(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	call := a.call(model.ActionDatabaseConnection)
	call.Key.Scopes = model.PresetReadOnly.Scopes()
	c, err := a.Databases.Connection(call, db.ID)
	if err != nil || !c.ReadOnly {
		t.Fatalf("read-only %v, %v", c.ReadOnly, err)
	}
	runSQL(t, c, "set default_transaction_read_only = off", "alter role app_readonly password 'chosen by sql'")
	if err := logIn(t, c, c.Password.Reveal()); !isRefused(err) {
		t.Fatalf("the change shows nothing: %v", err)
	}
	again, err := a.Databases.Connection(call, db.ID)
	if err != nil || again.PasswordChanged {
		t.Fatalf("%+v, %v", again.PasswordChanged, err)
	}
	if err := logIn(t, again, again.Password.Reveal()); err != nil {
		t.Errorf("as shown: %v", err)
	}
	if err := logIn(t, again, "chosen by sql"); !isRefused(err) {
		t.Errorf("the one it chose: %v", err)
	}
	a.awaitAudit(t, model.ActionPasswordPutBack, db.ID)
}

// The background check alone notices a change.
func TestPasswordChangeIsNoticedInTheBackground(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	runSQL(t, connectionDetails(t, a, db.ID), "alter role app password 'chosen by sql'")
	record, err := a.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a.Databases.SampleOne(ctx, record)
	a.awaitAudit(t, model.ActionPasswordChanged, db.ID)
}

// A role can give itself a verifier with a salt of megabytes, which must not get into the appliance's record. It counts
// as no password.
func TestHugeVerifierIsNotKept(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	encode := base64.StdEncoding.EncodeToString
	key := encode(make([]byte, sha256.Size))
	runSQL(t, connectionDetails(t, a, db.ID), "alter role app password 'SCRAM-SHA-256$4096:"+encode(make([]byte, 4<<20))+"$"+key+":"+key+"'")
	if c := connectionDetails(t, a, db.ID); !c.PasswordChanged {
		t.Error("the change is not noticed")
	}
	record, err := a.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if kept := len(record.OwnPassword.Verifier); kept > 1000 {
		t.Errorf("%d bytes are kept of the verifier", kept)
	}
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
		t.Fatal(err)
	}
	c, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := logIn(t, c.Connection, c.Connection.Password.Reveal()); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
}

// A missing library ends every tenant session as it starts, until the next start reverts the setting and says so.
func TestMissingLibraryIsTakenBack(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	for _, statement := range []string{
		"alter role app set local_preload_libraries = 'nothing'", "alter database shop set local_preload_libraries = 'nothing'",
		"alter role app in database shop set local_preload_libraries = 'nothing'",
	} {
		c := connectionDetails(t, a, db.ID)
		runSQL(t, c, statement)
		if err := logIn(t, c, c.Password.Reveal()); err == nil {
			t.Fatalf("%s shows nothing", statement)
		}
		if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
			t.Fatal(err)
		}
		if err := logIn(t, c, c.Password.Reveal()); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	a.awaitAudit(t, model.ActionLoginSettingsReset, db.ID)
}
