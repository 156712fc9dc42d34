package remote

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newReplication(s *session) *cobra.Command {
	return Group("replication", "Logical replication of a database", newReplicationShow(s), newReplicationURL(s), newReplicationDropSlot(s))
}

func newReplicationShow(s *session) *cobra.Command {
	cmd := s.aboutDatabase("show DATABASE", "Show the replication slots and publications", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, replicationDetails)(t.api.GetDatabaseReplication(t.ctx, db.ID))
		})
	cmd.Long = "Show the replication slots and publications of a database.\n`holdfast db update DATABASE --logical-replication on` lets clients follow it."
	return cmd
}

func replicationDetails(w io.Writer, r wire.Replication) {
	state := "off"
	if r.Enabled {
		state = "on"
	}
	details(w, "logical replication", state, "a slot retains", sizeOr(r.SlotLimitBytes))
	if len(r.Slots) > 0 {
		rows := [][]string{{"SLOT", "PLUGIN", "ACTIVE", "LAG", "RETAINED", "STATUS", "LOST AFTER"}}
		for _, x := range r.Slots {
			rows = append(rows, []string{
				x.Name, text(x.Plugin), fmt.Sprint(x.Active), sizeOr(&x.LagBytes), sizeOr(&x.RetainedBytes), x.WALStatus, sizeOr(x.SafeWALBytes),
			})
		}
		fmt.Fprintln(w)
		columns(w, rows)
	}
	if len(r.Publications) > 0 {
		rows := [][]string{{"PUBLICATION", "OWNER", "TABLES", "WITHOUT A REPLICA IDENTITY"}}
		for _, x := range r.Publications {
			rows = append(rows, []string{x.Name, x.Owner, fmt.Sprint(x.Tables), strings.Join(x.WithoutIdentity, ", ")})
		}
		fmt.Fprintln(w)
		columns(w, rows)
	}
}

func newReplicationURL(s *session) *cobra.Command {
	var conninfo bool
	cmd := s.aboutDatabase("url DATABASE", "Show how a client that follows the database connects", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			r, err := t.api.GetDatabaseReplication(t.ctx, db.ID)
			if err != nil {
				return err
			}
			if r.Connection == nil {
				return failf(exitConflict, "logical replication of %s is off, or the key may not change the database; "+
					"`holdfast db update %s --logical-replication on` switches it on", db.Name, db.Name)
			}
			return t.show(r, func(w io.Writer) {
				if conninfo {
					fmt.Fprintln(w, r.Connection.Conninfo)
				} else {
					fmt.Fprintln(w, r.Connection.ConnectionURL)
				}
			})
		})
	cmd.Flags().BoolVar(&conninfo, "conninfo", false, "in the form for CREATE SUBSCRIPTION")
	return cmd
}

func newReplicationDropSlot(s *session) *cobra.Command {
	var force bool
	cmd := s.aboutDatabase("drop-slot DATABASE SLOT", "Drop a replication slot", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			if err := t.confirm("drop the replication slot %s of %s, whose client must copy everything again", args[0], db.Name); err != nil {
				return err
			}
			return shows(t, func(w io.Writer, x wire.DroppedSlot) { details(w, "dropped", x.Name) })(t.api.DropReplicationSlot(t.ctx, db.ID, args[0], force))
		})
	cmd.Flags().BoolVar(&force, "force", false, "end the session of the client that reads it")
	return s.positions(cmd, databaseNames, slotNames)
}

// slotNames yields the replication slots of the database that the first argument names.
func slotNames(t *task, before []string, _ string) iter.Seq2[named, error] {
	return t.namesIn(before[0], func(db string) ([]named, error) {
		r, err := t.api.GetDatabaseReplication(t.ctx, db)
		var names []named
		for _, x := range r.Slots {
			names = append(names, named{id: x.Name, note: x.WALStatus})
		}
		return names, err
	})
}
