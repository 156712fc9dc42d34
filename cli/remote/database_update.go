package remote

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

// changes are the flags of `db update`, as typed; "default" restores a default.
type changes struct {
	name, project, every, keep, connections, window, replication, expires, sleep string

	dropSlots bool
}

func newDatabaseUpdate(s *session) *cobra.Command {
	var typed changes
	cmd := s.aboutDatabase("update DATABASE", "Change a database's name, project, backups, connections or maintenance window", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			in, err := typed.read(t)
			if err != nil {
				return err
			}
			if in == (wire.UpdateDatabase{}) {
				return usagef("say what is to change, such as --name or --backup-every")
			}
			if err := t.confirmUpdate(db, in); err != nil {
				return err
			}
			return shows(t, databaseDetails)(t.api.UpdateDatabase(t.ctx, db.ID, in))
		})
	cmd.Long = "Change a database. \"default\" restores the appliance's default of each property except name and project.\n" +
		"The name is also that of the database in PostgreSQL: a new one ends the open sessions, and programs need the\n" +
		"new connection URL. Scheduled backups wait for the maintenance window; backups that are asked for do not."
	cmd.Example = "  holdfast db update shop --backup-every 6h --keep-backups 30\n  holdfast db update shop --maintenance-window 'sunday 03:00 2h'\n" +
		"  holdfast db update shop --name store --yes"
	f := cmd.Flags()
	f.StringVar(&typed.name, "name", "", "the new name")
	f.StringVar(&typed.project, "project-id", "", "the id of the project to move it to")
	f.StringVar(&typed.every, "backup-every", "", "the time between scheduled backups, such as 6h")
	f.StringVar(&typed.keep, "keep-backups", "", "for how many days backups are kept; fewer than now needs a key that may delete backups")
	f.StringVar(&typed.connections, "connection-limit", "", "how many sessions the owner may have at a time; each takes about 2.5 MB of memory while idle")
	f.StringVar(&typed.expires, "expires-in", "", "of a branch: after how long it is deleted, such as 24h, or never")
	f.StringVar(&typed.replication, "logical-replication", "", "on or off: whether clients may stream the database's changes; restarts the database")
	f.BoolVar(&typed.dropSlots, "drop-slots", false, "with --logical-replication off: drop the replication slots")
	flagWords(cmd, "logical-replication", cobra.FixedCompletions([]cobra.Completion{"on", "off"}, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&typed.window, "maintenance-window", "", "when scheduled backups begin, and a restart for a newer PostgreSQL, in UTC: '[WEEKDAY] HH:MM LENGTH', such as '03:00 2h'")
	f.StringVar(&typed.sleep, "sleep-after", "", "stop the server after this long without connections, such as 10m, until somebody connects; 0 for never, which is the default")
	return cmd
}

func (c changes) read(t *task) (in wire.UpdateDatabase, err error) {
	given := t.cmd.Flags().Changed
	if given("name") {
		in.Name = &c.name
	}
	if given("project-id") {
		in.Project = &c.project
	}
	if given("backup-every") {
		in.BackupEverySeconds, err = readDefault("backup-every", c.every, wholeSeconds)
	}
	if err == nil && given("keep-backups") {
		in.BackupRetentionDays, err = readDefault("keep-backups", c.keep, wholeNumber)
	}
	if err == nil && given("connection-limit") {
		in.ConnectionLimit, err = readDefault("connection-limit", c.connections, wholeNumber)
	}
	if err == nil && given("expires-in") {
		in.ExpiresAt, err = readExpiry(c.expires, time.Now())
	}
	if err == nil && given("maintenance-window") {
		in.MaintenanceWindow, err = readDefault("maintenance-window", c.window, readWindow)
	}
	if err == nil && given("logical-replication") {
		if c.replication != "on" && c.replication != "off" {
			return in, usagef("--logical-replication: must be on or off")
		}
		in.LogicalReplication = new(c.replication == "on")
	}
	if given("drop-slots") {
		in.DropSlots = &c.dropSlots
	}
	if err == nil && given("sleep-after") {
		in.SleepAfterSeconds, err = readSleep(c.sleep)
	}
	return in, err
}

func wholeSeconds(text string) (wire.WholeNumber, error) {
	d, err := time.ParseDuration(text)
	return wire.WholeNumber(d.Seconds()), err
}

// readDefault reads a flag's value, or "default".
func readDefault[T any](flag, text string, read func(string) (T, error)) (wire.Resettable[T], error) {
	if text == "default" {
		return wire.Default[T](), nil
	}
	value, err := read(text)
	if err != nil {
		return wire.Resettable[T]{}, usagef("--%s: %q is not understood; --help has examples", flag, text)
	}
	return wire.SetTo(value), nil
}

// readSleep reads after how long a server stops. One that never sleeps is the default.
func readSleep(text string) (wire.Resettable[wire.WholeNumber], error) {
	if text == "never" {
		text = "0"
	}
	after, err := readDefault("sleep-after", text, wholeSeconds)
	if seconds, given := after.Value(); given && seconds != nil && *seconds == 0 {
		after = wire.Default[wire.WholeNumber]()
	}
	return after, err
}

// readExpiry reads how long a branch is to live from now on.
func readExpiry(text string, now time.Time) (wire.Resettable[time.Time], error) {
	if text == "never" {
		text = "default"
	}
	return readDefault("expires-in", text, func(text string) (time.Time, error) {
		in, err := time.ParseDuration(text)
		return now.Add(in).UTC(), err
	})
}

func wholeNumber(text string) (wire.WholeNumber, error) {
	n, err := strconv.Atoi(text)
	return wire.WholeNumber(n), err
}

// readWindow reads a window such as "sunday 03:00 2h".
func readWindow(text string) (w wire.MaintenanceWindow, err error) {
	words := strings.Fields(strings.ToLower(text))
	w.Day = wire.EveryDay
	if len(words) == 3 {
		w.Day, words = wire.WindowDay(words[0]), words[1:]
	}
	if len(words) != 2 {
		return w, fmt.Errorf("%d words", len(words))
	}
	length, err := time.ParseDuration(words[1])
	w.Start, w.Minutes = words[0], int(length.Minutes())
	return w, err
}

// confirmUpdate asks before a change that ends sessions or deletes backups.
func (t *task) confirmUpdate(db wire.Database, in wire.UpdateDatabase) error {
	if in.Name != nil && *in.Name != db.Name {
		if err := t.confirm("end the sessions in %s, and refuse programs that still use its present URL", db.Name); err != nil {
			return err
		}
	}
	if in.LogicalReplication != nil && *in.LogicalReplication != db.LogicalReplication {
		what := "restart %s, which ends the sessions in it"
		if in.DropSlots != nil && *in.DropSlots {
			what += ", and drop its replication slots, whose clients must copy everything again"
		}
		if err := t.confirm(what, db.Name); err != nil {
			return err
		}
	}
	if after, given := in.SleepAfterSeconds.Value(); given && (after == nil) != (db.SleepAfterSeconds == nil) {
		if err := t.confirm("restart %s, which ends its sessions", db.Name); err != nil {
			return err
		}
	}
	if days, given := in.BackupRetentionDays.Value(); given && (days == nil || db.BackupRetentionDays == nil || float64(*days) < *db.BackupRetentionDays) {
		kept := "for longer than the appliance keeps them"
		if days != nil {
			kept = fmt.Sprintf("that are more than %d days old", *days)
		}
		return t.confirm("delete backups of %s %s, now and from now on", db.Name, kept)
	}
	return nil
}

// ownProperties returns what a database has of its own, for details.
func ownProperties(db wire.Database) []string {
	every, keep, connections, window, branched, expires, sleep := "", "", "", "", "", "", ""
	if db.Parent != nil {
		branched, expires = *db.Parent+" as of "+formatTime(db.BranchedAt), orNever(formatTime(db.ExpiresAt))
	}
	if db.BackupEverySeconds != nil {
		every = (time.Duration(*db.BackupEverySeconds) * time.Second).String()
	}
	if db.BackupRetentionDays != nil {
		keep = fmt.Sprintf("%g days", *db.BackupRetentionDays)
	}
	if db.ConnectionLimit != nil {
		connections = fmt.Sprint(*db.ConnectionLimit)
	}
	if m := db.MaintenanceWindow; m != nil {
		window = fmt.Sprintf("%s %s UTC, %d minutes", strings.ReplaceAll(string(m.Day), "_", " "), m.Start, m.Minutes)
	}
	if db.SleepAfterSeconds != nil {
		sleep = (time.Duration(*db.SleepAfterSeconds) * time.Second).String()
	}
	replication := ""
	if db.LogicalReplication {
		replication = "on"
	}
	return []string{"logical replication", replication, "backup every", every, "backups kept", keep, "connection limit", connections, "maintenance window", window, "sleeps after", sleep, "branch of", branched, "expires", expires}
}
