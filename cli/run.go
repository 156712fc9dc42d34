package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/cli/sandbox"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server"
	"holdfast/server/api/wire"
	"holdfast/server/operator"
)

// sandboxRun holds the flags of `run`.
type sandboxRun struct {
	config
	org, name, from string
	private         bool
	idle            time.Duration // of the private appliance
	tookPrivate     bool
	named           bool // the data directory was given
	fromArgument    bool // --import was an argument, which other users can see
}

func newRun() *cobra.Command {
	var r sandboxRun
	cmd := &cobra.Command{
		Use:   "run [flags] [--import FILE.sql|URL] -- COMMAND [ARGUMENT…]",
		Short: "Run a command with a database of its own, which is thrown away",

		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("say which command to run, as in `%s -- psql`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.fromArgument = cmd.Flags().Changed("import")
			if err := r.load(cmd.Flags()); err != nil {
				return err
			}
			r.named = cmd.Flags().Changed("data-dir")
			return r.run(cmd.Context(), args, cmd.ErrOrStderr())
		},
	}
	cmd.Long = `Run a command with an empty PostgreSQL database of its own. DATABASE_URL and the variables PGHOST, PGPORT,
PGDATABASE, PGUSER and PGPASSWORD (with PGSSLMODE, unless it is on loopback) say where it is. When the command has ended, the database is gone; also when
this program was killed. It is made for tests and experiments: it has no backups, and does not survive a power cut.

Where an appliance runs in the data directory, the database is one of its own. Else a private one is started, which others
of your ` + "`run`" + `s share. It ends by itself after --private-idle without a database; its files are in ` + privateDirText + `.

A test suite gets a database for each test in the same server, in about 10 ms, by HOLDFAST_SANDBOX_SOCKET and
HOLDFAST_SANDBOX_TOKEN; see ` + "`holdfast sandbox --help`" + `.

--import loads a file of SQL with psql, up to the first error, or copies another database. Its password is taken from
PGPASSWORD, because others can see arguments; or the whole URL from HOLDFAST_IMPORT.

The command has this program's input and output, and gets its signals. It keeps the database for as long as it runs. When
the database ends before it does, because the appliance was stopped or killed or the database deleted, the command and all
processes it has started, but for daemons, get SIGTERM, and SIGKILL five seconds later; the exit code is then 122.

Otherwise the command's exit code is passed on; 128 and the signal's number when a signal ended it. 125 says that it was not run because of what comes before, 126 that it cannot be executed, and
127 that there is none of that name.`
	cmd.Example = "  holdfast run -- go test ./...\n" +
		"  holdfast run --import schema.sql -- npm test\n" +
		"  holdfast run --import postgres://app@db.example.com/shop -- psql"
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after the command are the command's
	r.registerCommon(flags)
	r.registerPostgres(flags)
	flags.StringVar(&r.org, "org", model.DefaultName, "id or name of the organization")
	flags.StringVar(&r.name, "name", "", "name of the database (default: one that is free)")
	flags.StringVar(&r.from, "import", "", "what to fill it with: a file of SQL, or postgres://user@host/database")
	flags.BoolVar(&r.private, "private", false, "start a private appliance even where another runs")
	registerIdle(flags, &r.idle)
	return cmd
}

// run creates the database, runs the command, and removes the database.
func (r *sandboxRun) run(ctx context.Context, args []string, stderr io.Writer) error {
	path, err := sandbox.Find(args[0])
	if err != nil {
		return err
	}
	source, script, err := r.imported()
	if err != nil {
		return err
	}
	if r.name != "" {
		if err := model.ValidateDatabaseName("name", r.name); err != nil {
			return usageError{err}
		}
	}
	lease, err := r.take(ctx, operator.NewSandbox{
		Organization: r.org, Name: r.name, Source: source, Operator: operatorName(),
	}, stderr)
	if err != nil {
		return notRun(err)
	}
	environment := lease.Environ(remote.Environ(withoutVariable(os.Environ(), "HOLDFAST_IMPORT"), wire.Environment(lease.Environment)))
	if script != "" {
		err = notRun(lease.Load(ctx, script, environment))
	}
	if err == nil {
		err = lease.Run(path, args, environment)
	}
	if gone := lease.Release(); gone != nil {
		if !errors.Is(err, gone) { // else err reports it
			fmt.Fprintln(stderr, "holdfast: "+describe(gone))
		}
		r.clearPrivate(ctx)
	}
	return err
}

// notRun marks an error from before the command ran.
func notRun(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &sandbox.Ended{Code: sandbox.ExitNotRun, Err: err}
}

// imported returns what to fill the database with: the URL of another one, or a
// file of SQL.
func (r *sandboxRun) imported() (source, script string, err error) {
	scheme, _, isURL := strings.Cut(r.from, "://")
	switch {
	case r.from == "":
		return "", "", nil
	case isURL && !strings.EqualFold(scheme, "postgres") && !strings.EqualFold(scheme, "postgresql"):
		err = errors.New("import: is neither a file of SQL nor a URL that begins with postgres:// or postgresql://")
	case isURL && r.fromArgument:
		source, err = remote.SourceURL("import", r.from, func(*url.URL) (string, error) { return "", nil })
	case isURL:
		source = r.from
	default:
		script, err = r.from, sandbox.CheckScript(r.from)
	}
	if err != nil {
		return "", "", usageError{err}
	}
	return source, script, nil
}

// take requests a sandbox from the running appliance, else from a private one.
func (r *sandboxRun) take(ctx context.Context, in operator.NewSandbox, stderr io.Writer) (*sandbox.Lease, error) {
	importing := showImport(stderr)
	if !r.private {
		lease, err := takeFrom(ctx, r.DataDir, in, importing)
		if !errors.Is(err, errNotRunning) {
			return lease, err
		}
		if r.named {
			return nil, r.errNamed()
		}
	}
	return r.takePrivate(ctx, in, importing)
}

// errNamed says that no appliance runs in the data directory that was given.
func (r *sandboxRun) errNamed() error {
	return fmt.Errorf("no appliance runs in %s; start it with `holdfast serve`, or leave --data-dir and HOLDFAST_DATA_DIR out for a private one", r.DataDir)
}

// takeFrom requests a sandbox from the appliance in a data directory;
// errNotRunning means that there is none.
func takeFrom(ctx context.Context, dataDir string, in operator.NewSandbox, importing func(operator.Importing)) (*sandbox.Lease, error) {
	dir, err := postgres.FindSocketDir(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotRunning
	}
	if err != nil {
		return nil, explainAccess(dataDir, err)
	}
	lease, err := sandbox.Take(ctx, dialOperator(dir), in, importing)
	switch {
	case isNotRunning(err), errors.Is(err, sandbox.ErrClosing):
		return nil, errNotRunning
	case err != nil:
		return nil, explainAccess(dataDir, err)
	}
	lease.Socket = server.OperatorSocket(dir)
	return lease, nil
}

func explainAccess(dataDir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("the appliance in %s is another user's: become that user, or say --private for an appliance of your own: %w", dataDir, err)
}

// showImport returns a function that prints the phases of an import to stderr.
func showImport(stderr io.Writer) func(operator.Importing) {
	phase := ""
	return func(i operator.Importing) {
		if i.Phase != phase {
			phase = i.Phase
			fmt.Fprintf(stderr, "holdfast: importing: %s (%d%%)\n", i.Phase, i.Percent)
		}
	}
}
