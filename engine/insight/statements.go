package insight

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/advice"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Statements are what a database's server has counted of each statement.
type Statements struct {
	// Enabled is false where the server does not load pg_stat_statements; Enable then says how it would.
	Enabled    bool
	Enable     string
	Since      *time.Time // of the counters, unless they were reset since
	Statements []advice.Statement
}

// howToCount says how a server comes to count its statements.
const howToCount = "The server does not load pg_stat_statements, so it counts no statements. Every new database loads it where PostgreSQL's contrib modules are installed " +
	"(Debian: postgresql-contrib, part of postgresql from version 10 on): install them and restart the database. Where the operator's settings " +
	"for the database name shared_preload_libraries, add pg_stat_statements to them."

// Statements returns the statements of a database that took most, by the order.
func (s *Service) Statements(ctx context.Context, call *model.Call, id string, order advice.StatementOrder) (found Statements, err error) {
	db, err := s.databases.Database(call, id)
	if err != nil {
		return found, err
	}
	err = s.databases.Inspect(ctx, db, databases.Maintenance, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if found.Enabled, err = advice.CountsStatements(ctx, conn); err != nil || !found.Enabled {
			return err
		}
		since, err := advice.StatementsSince(ctx, conn)
		if err != nil {
			return err
		}
		found.Since = &since
		found.Statements, err = advice.Statements(ctx, conn, db.Name, order)
		return err
	})
	if err == nil && !found.Enabled {
		found.Enable = howToCount
	}
	return found, err
}

// StatementsReset forgets what was counted of the database's statements, and returns of how many.
func (s *Service) StatementsReset(ctx context.Context, call *model.Call, id string) (forgotten int, err error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return 0, err
	}
	db, err := s.databases.Database(call, id)
	if err != nil {
		return 0, err
	}
	err = s.databases.Inspect(context.WithoutCancel(ctx), db, databases.Maintenance, func(ctx context.Context, conn *pgx.Conn) error {
		counts, err := advice.CountsStatements(ctx, conn)
		if err == nil && counts {
			forgotten, err = advice.ResetStatements(ctx, conn, db.Name)
		} else if err == nil {
			err = &model.Error{Code: model.CodeConflict, Message: howToCount}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	call.Note("statements", strconv.Itoa(forgotten))
	return forgotten, s.core.Change(call, func(*meta.Tx) error { return nil })
}

// Explained is a statement to explain: its text, or the id of one that was counted.
type Explained struct{ Statement, ID string }

func (in Explained) validate() (id int64, err error) {
	switch {
	case (in.Statement == "") == (in.ID == ""):
		return 0, model.Invalid("statement", "give either statement or statement_id")
	case in.ID != "":
		if id, err = strconv.ParseInt(in.ID, 10, 64); err != nil {
			return 0, model.Invalid("statement_id", "must be the id of a statement, from the list of statements")
		}
	case len(in.Statement) > advice.MaxExplained:
		return 0, model.Invalid("statement", "must have %d bytes at most", advice.MaxExplained)
	case !utf8.ValidString(in.Statement) || strings.ContainsRune(in.Statement, 0):
		return 0, model.Invalid("statement", "must be UTF-8 without NUL")
	}
	return id, nil
}

// Explain returns the plan of a statement and its text. It runs as the owner, and executes nothing but what the
// planner evaluates.
func (s *Service) Explain(ctx context.Context, call *model.Call, id string, in Explained) (statement, plan string, err error) {
	number, err := in.validate()
	if err != nil {
		return "", "", err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return "", "", err
	}
	db, err := s.databases.Database(call, id)
	if err != nil {
		return "", "", err
	}
	if statement = in.Statement; in.ID != "" {
		if statement, err = s.counted(ctx, db, number); err != nil {
			return "", "", err
		}
	}
	plan, err = s.databases.Explain(ctx, db, statement)
	return statement, plan, err
}

// counted returns the text of a statement that the server has counted.
func (s *Service) counted(ctx context.Context, db model.Database, id int64) (text string, err error) {
	err = s.databases.Inspect(ctx, db, databases.Maintenance, func(ctx context.Context, conn *pgx.Conn) (err error) {
		text, err = advice.StatementText(ctx, conn, db.Name, id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) || err == nil && text == "" {
		return "", model.Errorf(model.CodeNotFound, "the database has counted no statement %d whose plan can be shown: it has forgotten it, or it is too long", id)
	}
	if err != nil {
		return "", fmt.Errorf("read statement: %w", err)
	}
	return text, nil
}
