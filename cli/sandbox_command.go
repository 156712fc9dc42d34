package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"

	"github.com/spf13/cobra"

	"holdfast/engine/postgres"
	"holdfast/server"
)

func newSandbox() *cobra.Command {
	var r sandboxRun
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Say where test suites get a database for each test",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.load(cmd.Flags()); err != nil {
				return err
			}
			r.named = cmd.Flags().Changed("data-dir")
			return r.printSocket(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Long = `Print the value of HOLDFAST_SANDBOX_SOCKET, by which a test suite gets a database for each test, in about 10 ms: a copy of a template that it has
migrated once. Where an appliance runs in the data directory, the databases are on a server of its own; else a private
appliance is started as by ` + "`holdfast run`" + `.

` + "`holdfast run`" + ` gives its command the same variable, and HOLDFAST_SANDBOX_TOKEN, with which the databases are in the server of
that command and end with it. Without the token, all tests of this user share a server, which is removed half a minute after
the last of them.

Go programs call sandbox.New of the package holdfast/cli/client/sandbox. Others use HTTP on the Unix socket: see
docs/testing.md, which has examples for pytest and Node.js.`
	cmd.Example = "  HOLDFAST_SANDBOX_SOCKET=$(holdfast sandbox) pytest"
	flags := cmd.Flags()
	r.registerCommon(flags)
	r.registerPostgres(flags)
	flags.BoolVar(&r.private, "private", false, "use a private appliance even where another runs")
	registerIdle(flags, &r.idle)
	return cmd
}

// printSocket prints the path of the socket of an appliance that runs.
func (r *sandboxRun) printSocket(ctx context.Context, out io.Writer) error {
	socket, err := r.findSocket(ctx)
	if err == nil {
		_, err = fmt.Fprintln(out, socket)
	}
	return err
}

// findSocket returns the socket of the running appliance, else of the private one,
// which it starts if necessary.
func (r *sandboxRun) findSocket(ctx context.Context) (string, error) {
	if !r.private {
		socket, err := listeningIn(ctx, r.DataDir)
		if !errors.Is(err, errNotRunning) {
			return socket, err
		}
		if r.named {
			return "", r.errNamed()
		}
	}
	dir, err := privateDir()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, privateTimeout)
	defer cancel()
	for {
		socket, err := listeningIn(ctx, dir)
		if !errors.Is(err, errNotRunning) {
			return socket, err
		}
		if err := r.startPrivate(ctx, dir); err != nil {
			return "", err
		}
	}
}

// listeningIn returns the socket of the appliance in a data directory; errNotRunning
// means that there is none.
func listeningIn(ctx context.Context, dataDir string) (string, error) {
	dir, err := postgres.FindSocketDir(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNotRunning
	}
	var conn net.Conn
	if err == nil {
		conn, err = dialOperator(dir)(ctx)
	}
	if isNotRunning(err) {
		return "", errNotRunning
	}
	if err != nil {
		return "", explainAccess(dataDir, err)
	}
	return server.OperatorSocket(dir), conn.Close()
}
