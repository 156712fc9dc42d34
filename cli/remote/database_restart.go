package remote

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newDatabaseRestart(s *session) *cobra.Command {
	var outdated bool
	cmd := s.command("restart [DATABASE]", "Restart a database, and wait until it accepts connections", cobra.MaximumNArgs(1), func(t *task, args []string) error {
		if outdated == (len(args) == 1) {
			return usagef("say which database to restart, or --outdated")
		}
		if outdated {
			return t.restartOutdated()
		}
		db, err := t.database(args[0])
		if err == nil {
			db, err = t.restart(db.ID, db.Name)
		}
		if err != nil {
			return err
		}
		return t.show(db, func(w io.Writer) { printRestarted(w, db) })
	})
	cmd.Long = "Restart a database, and wait until it accepts connections. This ends its sessions. --outdated restarts, one after the\n" +
		"other, all databases that run on an older minor version of PostgreSQL than the machine has; it ends with the first that fails."
	cmd.Flags().BoolVar(&outdated, "outdated", false, "restart every database for which the machine has a newer minor version of PostgreSQL")
	return s.positions(cmd, databaseNames)
}

func (t *task) restart(id, name string) (wire.Database, error) {
	m := t.meter("restarting " + name)
	defer m.stop()
	return t.api.RestartDatabase(t.ctx, id)
}

func printRestarted(w io.Writer, db wire.Database) {
	fmt.Fprintf(w, "restarted %s: it is %s\n", db.Name, db.Status)
}

// restartOutdated restarts in turn the databases that the advice names.
func (t *task) restartOutdated() error {
	var outdated []wire.Resource
	for r, err := range t.api.Recommendations(t.ctx, client.RecommendationOptions{Code: "postgres_minor_outdated"}) {
		if err != nil {
			return err
		}
		if r.Resource != nil && r.Resource.ID != nil {
			outdated = append(outdated, *r.Resource)
		}
	}
	if len(outdated) == 0 {
		t.note("every database runs on the newest minor version that the machine has")
	} else if err := t.confirm("restart %d databases one after the other, which ends their sessions", len(outdated)); err != nil {
		return err
	}
	restarted := []wire.Database{}
	for _, r := range outdated {
		db, err := t.restart(*r.ID, text(r.Name))
		if err != nil {
			t.note("restarted %d of %d databases; the restart of %s failed", len(restarted), len(outdated), text(r.Name))
			return err
		}
		restarted = append(restarted, db)
	}
	return t.showWith(whole(), restarted, func(w io.Writer) {
		for _, db := range restarted {
			printRestarted(w, db)
		}
	})
}
