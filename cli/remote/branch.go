package remote

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newBranch(s *session) *cobra.Command {
	return Group("branch", "Branches: databases that begin as another was at a moment",
		newBranchCreate(s), newBranchList(s), newBranchReset(s), newBranchDiff(s), newBranchDelete(s))
}

func newBranchCreate(s *session) *cobra.Command {
	var at string
	var expires, sleep time.Duration
	var noWait bool
	cmd := s.aboutDatabase("create DATABASE NAME", "Make a branch of a database", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			in := wire.CreateBranch{Name: args[0]}
			var err error
			if in.At, err = momentOrNow(at, time.Now()); err != nil {
				return err
			}
			if expires != 0 {
				in.ExpiresIn = new(int64(expires.Seconds()))
			}
			if t.cmd.Flags().Changed("sleep-after") {
				in.SleepAfterSeconds = new(wire.WholeNumber(sleep.Seconds()))
			}
			made, err := t.api.CreateBranch(t.ctx, db.ID, in)
			return t.followBranch(made, err, !noWait, "the branch "+in.Name+" of "+db.Name)
		})
	cmd.Long = "Make a database that begins as another was at a moment, with a URL and passwords of its own.\n" +
		"Where the file system of the appliance's data can share blocks (XFS, btrfs, bcachefs, ZFS from 2.2 on), a branch of the\n" +
		"present takes about a second, whatever the size of the database. Elsewhere, and of the past, it is a restore of a backup."
	cmd.Example = "  holdfast branch create shop try\n  holdfast branch create shop before --at 10m --expires-in 24h"
	flags := cmd.Flags()
	flags.StringVar(&at, "at", "", "the moment of the database: RFC 3339 such as 2026-03-01T12:00:00Z, or how long ago, such as 10m (default: now)")
	flags.DurationVar(&expires, "expires-in", 0, "after how long the branch is deleted, such as 24h (default: never)")
	flags.DurationVar(&sleep, "sleep-after", 0, "stop the server after this long without connections, until somebody connects; 0 for never (default: 10m if it can)")
	flags.BoolVar(&noWait, "no-wait", false, "do not wait until the branch accepts connections")
	return cmd
}

// momentOrNow parses a moment; "" is now.
func momentOrNow(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := timeOrAgo("at", text, now)
	return &at, err
}

// followBranch shows how a branch is being made, and waits for it.
func (t *task) followBranch(made wire.Branch, err error, wait bool, what string) error {
	if err != nil {
		return err
	}
	if made.Method == wire.BranchRestore {
		t.note("it is restored, because %s; that takes about %s", text(made.MethodReason), aboutBranch(made.EstimatedSeconds))
	}
	if wait {
		if made.Operation, err = t.awaitEnd(made.Operation, what); err != nil {
			return err
		}
		if err := failed(what, made.Operation.Status != wire.OperationCompleted, made.Operation.Error); err != nil {
			return err
		}
		if made.Database, err = t.api.GetDatabase(t.ctx, made.Database.ID); err != nil {
			return err
		}
	}
	return t.show(made, func(w io.Writer) {
		db := made.Database
		fmt.Fprintf(w, "%s is %s: %s (%s) at %s:%d\n", what, made.Operation.Status, db.Name, db.ID, db.Host, db.Port)
		t.note("`holdfast db psql %s` connects, `holdfast db url %s` shows the URL", db.Name, db.Name)
	})
}

func aboutBranch(seconds *float64) string {
	if seconds == nil {
		return "as long as a restore: none has been measured on that machine"
	}
	return fmt.Sprintf("%.1f s", *seconds)
}

func newBranchList(s *session) *cobra.Command {
	cmd := s.command("list [DATABASE]", "Show databases and their branches as a tree", cobra.MaximumNArgs(1), func(t *task, args []string) error {
		var all []wire.Database
		for db, err := range t.api.Databases(t.ctx, client.DatabaseOptions{}) {
			if err != nil {
				return err
			}
			all = append(all, db)
		}
		root := ""
		if len(args) > 0 {
			db, err := t.database(args[0])
			if err != nil {
				return err
			}
			root = db.ID
		}
		shown, rows := []wire.Database{}, [][]string{}
		for _, at := range branchTree(all, root) {
			expires := ""
			if at.db.ExpiresAt != nil {
				expires = formatTime(at.db.ExpiresAt)
			}
			shown = append(shown, at.db)
			rows = append(rows, []string{at.indent + at.db.Name, doing(at.db), Ago(at.db.BranchedAt), expires, sizeOr(at.db.SizeBytes), at.db.ID})
		}
		return t.table(whole(), shown, "there are no branches; `holdfast branch create DATABASE NAME` makes one",
			[]string{"NAME", "STATUS", "AS OF", "EXPIRES", "SIZE", "ID"}, rows)
	})
	cmd.Aliases = []string{"tree"}
	cmd.Long = "Show each database that has branches, with its branches below it; with DATABASE, only that one and what was branched from it."
	return s.positions(cmd, databaseNames)
}

// branchLine is a line of the tree.
type branchLine struct {
	indent string
	db     wire.Database
}

// branchTree returns the trees of databases with branches, each before its branches, or the tree below root.
func branchTree(all []wire.Database, root string) (lines []branchLine) {
	children, known := map[string][]wire.Database{}, map[string]bool{}
	for _, db := range all {
		known[db.ID] = true
		children[text(db.Parent)] = append(children[text(db.Parent)], db)
	}
	for _, siblings := range children {
		slices.SortFunc(siblings, func(a, b wire.Database) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	}
	var add func(db wire.Database, before, mark, below string)
	add = func(db wire.Database, before, mark, below string) {
		lines = append(lines, branchLine{indent: before + mark, db: db})
		for i, child := range children[db.ID] {
			if i == len(children[db.ID])-1 {
				add(child, before+below, "└─ ", "   ")
			} else {
				add(child, before+below, "├─ ", "│  ")
			}
		}
	}
	for _, db := range all {
		top := db.ID == root
		if root == "" {
			top = !known[text(db.Parent)] && (len(children[db.ID]) > 0 || db.Parent != nil)
		}
		if top {
			add(db, "", "", "")
		}
	}
	return lines
}

func newBranchReset(s *session) *cobra.Command {
	var at string
	var noWait bool
	cmd := s.aboutDatabase("reset BRANCH", "Put a branch back to what its parent is, or was at a moment", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			moment, err := momentOrNow(at, time.Now())
			if err != nil {
				return err
			}
			if err := t.confirm("replace the data of the branch %s by that of its parent, and remove what an earlier restore or reset replaced", db.Name); err != nil {
				return err
			}
			made, err := t.api.ResetBranch(t.ctx, db.ID, wire.ResetBranch{At: moment})
			return t.followBranch(made, err, !noWait, "the reset of "+db.Name)
		})
	cmd.Long = "Replace the data of a branch by that of its parent. The branch's URL and passwords stay.\n" +
		"What is replaced is kept for a while: `holdfast recovery undo` brings it back."
	cmd.Flags().StringVar(&at, "at", "", "the moment of the parent: RFC 3339, or how long ago, such as 10m (default: now)")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is completed")
	return cmd
}

func newBranchDiff(s *session) *cobra.Command {
	return s.aboutDatabase("diff BRANCH", "Show how the schema of a branch differs from its parent's", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, func(w io.Writer, found wire.BranchDiff) {
				for line := range strings.Lines(found.Diff) {
					fmt.Fprintln(w, printable(strings.TrimSuffix(line, "\n")))
				}
				if found.Identical {
					t.note("the schemas are the same")
				}
				if found.Truncated {
					t.note("the difference is longer: this is its beginning")
				}
			})(t.api.GetBranchDiff(t.ctx, db.ID))
		})
}

func newBranchDelete(s *session) *cobra.Command {
	return s.aboutDatabase("delete BRANCH", "Delete a branch", cobra.ExactArgs(1), func(t *task, db wire.Database, _ []string) error {
		if db.Parent == nil {
			return usagef("%s is not a branch; `holdfast db delete` deletes databases", db.Name)
		}
		return t.deleteDatabase(db)
	})
}
