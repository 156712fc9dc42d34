package remote

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newDatabaseSession(s *session) *cobra.Command {
	return Group("session", "Open sessions of a database's users", newSessionList(s), newSessionCancel(s), newSessionTerminate(s))
}

func newSessionList(s *session) *cobra.Command {
	return s.aboutDatabase("list DATABASE", "Show the open sessions, the oldest first", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListDatabaseSessions(t.ctx, db.ID)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, x := range found.Sessions {
				rows = append(rows, []string{
					x.ID, x.User, x.Database, text(x.ClientAddress), text(x.Application), text(x.State), Ago(x.StateSince), waitsFor(x), shortened(text(x.Query)),
				})
			}
			return t.table(nil, found, "there are no sessions", []string{"ID", "USER", "DATABASE", "FROM", "APPLICATION", "STATE", "SINCE", "WAITS FOR", "STATEMENT"}, rows)
		})
}

func waitsFor(x wire.DatabaseSession) string {
	if x.WaitType == nil {
		return ""
	}
	return *x.WaitType + " " + text(x.Wait)
}

// shortened returns the beginning of a statement, in one line.
func shortened(statement string) string {
	const most = 60
	runes := []rune(strings.Join(strings.Fields(statement), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

func newSessionCancel(s *session) *cobra.Command {
	cmd := s.aboutDatabase("cancel DATABASE SESSION", "Cancel the statement that a session executes", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			return shows(t, func(w io.Writer, x wire.SignalledSession) {
				fmt.Fprintf(w, "cancelled the statement of %s; the session goes on\n", x.ID)
			})(t.api.CancelDatabaseSession(t.ctx, db.ID, args[0]))
		})
	return s.positions(cmd, databaseNames, sessionNames)
}

func newSessionTerminate(s *session) *cobra.Command {
	cmd := s.aboutDatabase("terminate DATABASE SESSION", "End a session", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			return shows(t, func(w io.Writer, x wire.SignalledSession) {
				if x.Ended {
					fmt.Fprintf(w, "ended %s\n", x.ID)
				} else {
					fmt.Fprintf(w, "%s ends as soon as it can be interrupted\n", x.ID)
				}
			})(t.api.TerminateDatabaseSession(t.ctx, db.ID, args[0]))
		})
	return s.positions(cmd, databaseNames, sessionNames)
}

// sessionNames yields the sessions of the database that the first argument names.
func sessionNames(t *task, before []string, _ string) iter.Seq2[named, error] {
	return t.namesIn(before[0], func(db string) ([]named, error) {
		found, err := t.api.ListDatabaseSessions(t.ctx, db)
		var names []named
		for _, x := range found.Sessions {
			names = append(names, named{id: x.ID, note: x.User})
		}
		return names, err
	})
}

// namesIn yields what a database has, as list returns it for the database's id.
func (t *task) namesIn(database string, list func(id string) ([]named, error)) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		db, err := t.database(database)
		if err != nil {
			yield(named{}, err)
			return
		}
		names, err := list(db.ID)
		if err != nil {
			yield(named{}, err)
			return
		}
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}
