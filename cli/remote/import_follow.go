package remote

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newImportCutover(s *session) *cobra.Command {
	cmd := s.command("cutover IMPORT", "Make a database that follows its source independent of it", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.importID(args[0])
		if err != nil {
			return err
		}
		i, err := t.api.CutOverImport(t.ctx, id)
		if err != nil {
			return err
		}
		return t.showImport(i)
	})
	cmd.Long = "Make a database that follows its source independent of it. Stop everything that writes to the source before: what is\n" +
		"written there later is lost. The command waits until the last changes are here, carries over the sequences, compares\n" +
		"numbers of rows, and opens the database; then start the programs again with its address. If it is refused, the\n" +
		"database follows on, and the source can go on. IMPORT is the import's id, or the name of the database that it makes."
	return s.positions(cmd, importNames)
}

// showImport shows an import that has ended, or follows.
func (t *task) showImport(i wire.ImportDetail) error {
	if err := t.show(i, func(w io.Writer) { importDetails(w, i) }); err != nil {
		return err
	}
	if i.Status == wire.ImportCompletedWithErrors {
		return failf(exitFailed, "the import is completed, but not everything came over: %d errors", len(i.Errors))
	}
	return failed("the import", i.Status == wire.ImportFailed, i.Error)
}

// followDetails shows how the new database follows its source.
func followDetails(w io.Writer, i wire.ImportDetail) {
	f := i.Following
	if f == nil {
		return
	}
	lag, retained, pause, next := "", "", "", ""
	if i.Status == wire.ImportFollowing {
		next = "stop what writes at the source, then: holdfast import cutover " + i.Name
	}
	if f.LagBytes != nil && f.LagSeconds != nil {
		lag = fmt.Sprintf("%s, %.0f s", size(*f.LagBytes), *f.LagSeconds)
	}
	if f.RetainedBytes != nil {
		retained = size(*f.RetainedBytes) + " of the source's write-ahead log"
	}
	if f.PauseSeconds != nil {
		pause = time.Duration(*f.PauseSeconds * float64(time.Second)).Round(10 * time.Millisecond).String()
	}
	details(w, "publication", f.Publication, "slot", f.Slot, "slot retains", retained, "lag", lag, "trouble", text(f.Trouble), "write pause", pause, "next", next)
	printMore(w, []string{"DOES NOT FOLLOW"}, f.NotFollowed, func(note string) []string { return []string{note} })
	printMore(w, []string{"STALE MATERIALIZED VIEW", "SINCE", "BECAUSE"}, f.StaleViews, func(v wire.StaleView) []string {
		return []string{v.Name, formatTime(&v.Since), v.Message}
	})
}
