package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/server"
)

// recoverer is a run of recover.
type recoverer struct {
	config
	copyFlags
	at                        string
	first, only               []string
	list, takeOver, yes, json bool
}

func newRecover() *cobra.Command {
	r := &recoverer{}
	cmd := &cobra.Command{
		Use: "recover URL", Short: "Bring an appliance back from its copy in a store, and run it",
		Args: exactURL,
		Long: `Bring an appliance back from its copy in a store into an empty data directory, and run it as ` + "`holdfast serve`" + ` does, with the
same flags. Metadata, keys, people, settings and small objects come first; then the API and the console answer. Databases follow,
several at a time, the smallest first, each to the last commit that was copied; then large objects, of which those that are asked
for come at once. The API and the console show how far it is.

What was interrupted goes on when the command is repeated. Once the console answers, ` + "`holdfast serve --offsite URL`" + ` goes on too.

The machine whose copy it is must be gone: recover waits until it has written nothing for a minute and a half. --take-over does not
wait. Should it come back, it notices, copies nothing any more and is read-only.`,
		Example: "  holdfast recover s3://backups/home --data-dir /var/lib/holdfast --passphrase-file /root/offsite.passphrase\n" +
			"  holdfast recover file:///mnt/usb/holdfast --passphrase-file /root/offsite.passphrase --list\n" +
			"  holdfast recover s3://backups/home --passphrase-file /root/offsite.passphrase --at 2026-11-23T09:30:00Z",
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), cmd, args[0]) },
	}
	flags := cmd.Flags()
	r.registerServe(flags)
	r.register(flags)
	for _, name := range []string{"offsite", "offsite-passphrase-file", "offsite-identity"} { // said once is enough
		_ = flags.MarkHidden(name)
	}
	flags.StringVar(&r.at, "at", "", "bring back this moment, such as 2026-11-23T09:30:00Z (default: the last that was copied)")
	flags.StringSliceVar(&r.first, "first", nil, "names of databases that come before the others")
	flags.StringSliceVar(&r.only, "only", nil, "names of the databases to bring back; the others stay in the copy until the command is repeated with their names, or without --only")
	flags.BoolVar(&r.list, "list", false, "only list the machines and the points in the copy")
	flags.BoolVar(&r.takeOver, "take-over", false, "do not wait until the other machine is silent")
	flags.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&r.json, "json", false, "with --list: print JSON")
	return cmd
}

func (r *recoverer) run(ctx context.Context, cmd *cobra.Command, location string) error {
	if err := r.read(cmd.Flags()); err != nil {
		return err
	}
	at, err := r.moment()
	if err != nil {
		return err
	}
	keys, err := r.keys()
	if err != nil {
		return err
	}
	where := offsite.Location{URL: location, Keys: keys}
	if r.list {
		return r.showList(ctx, cmd, where)
	}
	for _, setting := range []struct{ flag, value string }{
		{"offsite", location}, {"offsite-passphrase-file", r.PassphraseFile}, {"offsite-identity", r.IdentityFile},
	} {
		if setting.value == "" {
			continue
		}
		if err := cmd.Flags().Set(setting.flag, setting.value); err != nil {
			return usageError{err}
		}
	}
	if err := r.check(); err != nil {
		return err
	}
	r.Offsite.Opened = keys.Opened()
	r.prepare = func(log *slog.Logger) error {
		shown := &recoveryMeter{out: cmd.ErrOrStderr()}
		report, err := offsite.Recover(ctx, offsite.RecoverOptions{
			Location: where, DataDir: r.DataDir, At: at, First: r.first, Only: r.only, TakeOver: r.takeOver,
			Confirm: func(found offsite.Recoverable) error { return r.confirm(ctx, cmd, location, found) }, Progress: shown.show,
		})
		shown.end()
		if err != nil {
			return err
		}
		return remote.Print(cmd.OutOrStdout(), func(w io.Writer) { r.showRecovered(w, report) })
	}
	r.told = func(event model.Event) {
		if event.Type == model.EventOffsiteRecovered {
			_ = remote.Print(cmd.OutOrStdout(), func(w io.Writer) { fmt.Fprintln(w, event.Message) })
		}
	}
	server.TuneRuntime(true)
	return serve(ctx, r.config, cmd.OutOrStdout(), cmd.ErrOrStderr(), nil)
}

// moment parses --at.
func (r *recoverer) moment() (time.Time, error) {
	if r.at == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, r.at)
	if err != nil {
		return at, usageError{fmt.Errorf("at: %q is not a time such as 2026-11-23T09:30:00Z", r.at)}
	}
	if at.After(time.Now()) {
		return at, usageError{fmt.Errorf("at: %s is in the future", r.at)}
	}
	return at, nil
}

func (r *recoverer) confirm(ctx context.Context, cmd *cobra.Command, location string, found offsite.Recoverable) error {
	for _, warning := range r.unfit(ctx, found.Databases) {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning)
	}
	return remote.Confirm(cmd, r.yes, fmt.Sprintf("make %s the appliance of %s, whose copy in %s was written last at %s (%s); %s copies nothing any more and becomes read-only when it notices",
		r.DataDir, found.Machine, location, found.Latest.Local().Format(time.DateTime), remote.Ago(&found.Latest), found.Machine))
}

func (r *recoverer) showList(ctx context.Context, cmd *cobra.Command, at offsite.Location) error {
	if strings.HasPrefix(at.URL, "file:") {
		if err := giveUpRoot(r.DataDir, r.User); err != nil {
			return err
		}
	}
	found, err := offsite.List(ctx, at)
	if err != nil {
		return err
	}
	return printResult(cmd.OutOrStdout(), r.json, found, func(w io.Writer, c offsite.Contents) {
		machines := make([][]any, len(c.Machines))
		for i, m := range c.Machines {
			machines[i] = []any{m.Epoch, m.Name, m.Since.UTC().Format(time.RFC3339)}
		}
		row := func(cells []any) []any { return cells }
		rows("EPOCH\tMACHINE\tSINCE", row)(w, machines)
		points := make([][]any, len(c.Points))
		for i, p := range c.Points {
			points[i] = []any{p.UTC().Format(time.RFC3339Nano)}
		}
		fmt.Fprintln(w)
		rows("POINT", row)(w, points)
		fmt.Fprintf(w, "\nThe last change in the copy is of %s. --at also takes the moments between two points, and after the newest.\n", c.Latest.UTC().Format(time.RFC3339))
		for _, d := range c.Damage {
			fmt.Fprintf(w, "damaged: %s: %s\n", d.Object, d.Reason)
		}
	})
}

// showRecovered prints what the first phase has brought back.
func (r *recoverer) showRecovered(w io.Writer, report offsite.RecoveryReport) {
	fmt.Fprintf(w, "Brought back from %s, as of %s:\n  keys, people, settings, audit log and small objects\n", report.Machine, report.Until.Local().Format("2006-01-02 15:04:05.000 MST"))
	var bytes int64
	names := []string{}
	for _, d := range report.Databases {
		bytes += d.Bytes
		names = append(names, d.Name)
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "To follow while the appliance runs:\n  databases: %s (%s)\n  large objects\n", strings.Join(names, ", "), amount(bytes))
	}
	for _, text := range report.Warnings {
		fmt.Fprintf(w, "Note: %s\n", text)
	}
	fmt.Fprintf(w, "From now on the appliance runs with `holdfast serve --data-dir %s --offsite %s …`.\n", r.DataDir, r.Offsite.URL)
}

// recoveryMeter shows how far a recovery is: in one line of a terminal, else in a line
// now and then.
type recoveryMeter struct {
	out   io.Writer
	stage offsite.Stage
	last  time.Time
	open  bool // the line has no end yet
}

func (m *recoveryMeter) show(p offsite.Progress) {
	file, ok := m.out.(*os.File)
	live := ok && term.IsTerminal(int(file.Fd()))
	every := 10 * time.Second
	if live {
		every = 100 * time.Millisecond
	}
	if p.Stage == m.stage && time.Since(m.last) < every {
		return
	}
	m.stage, m.last = p.Stage, time.Now()
	text := describeProgress(p)
	if !live {
		fmt.Fprintln(m.out, text)
		return
	}
	fmt.Fprintf(m.out, "\r\x1b[K%s", text)
	m.open = true
}

func (m *recoveryMeter) end() {
	if m.open {
		fmt.Fprintln(m.out)
	}
}

func describeProgress(p offsite.Progress) string {
	switch p.Stage {
	case offsite.StageSilence:
		return fmt.Sprintf("waiting to see whether %s still writes, for %.0f s more; --take-over does not wait", p.Machine, p.Left.Seconds())
	case offsite.StageEntries:
		return fmt.Sprintf("reading the checkpoint: %d of %d parts", p.Done, p.Total)
	case offsite.StageLog:
		return fmt.Sprintf("replaying the log: %d changes, up to %s", p.Done, p.Until.Local().Format(time.TimeOnly))
	default:
		return "writing everything to the disk"
	}
}
