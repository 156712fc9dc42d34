package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/doctor"
	"holdfast/engine/postgres"
	"holdfast/server"
)

func newDoctor() *cobra.Command {
	var c config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this machine is fit to run the appliance",
		Long: "Check whether this machine is fit to run the appliance, with the settings that `holdfast serve` would\n" +
			"have, and say what to do where it is not. Nothing is changed or fetched. The exit code is 1 when there\n" +
			"is a problem, and 0 when there are only warnings.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd.Flags()); err != nil {
				return err
			}
			found, err := examine(cmd, c)
			if err != nil {
				return err
			}
			if err := printResult(cmd.OutOrStdout(), asJSON, found, showFindings); err != nil {
				return err
			}
			if doctor.Worst(found) == doctor.Problem {
				return errNotFit
			}
			return nil
		},
	}
	c.registerServe(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

var errNotFit = errors.New("there are problems; each is listed with its remedy")

func examine(cmd *cobra.Command, c config) ([]doctor.Finding, error) {
	opts := doctor.Options{
		DataDir:        c.DataDir,
		Search:         c.engine().Search,
		Addresses:      c.addresses(),
		PostgresListen: c.Config.Listen,
		FirstPort:      c.FirstPort, LastPort: c.LastPort,
		TLSCert: c.TLSCert, TLSKey: c.TLSKey,
		DiskFree: c.advice().DiskFree,
		Running:  isRunning(c.DataDir),
	}
	if c.Webhooks.OperatorURL != "" {
		opts.WebhookSecret = c.Webhooks.SecretFile
	}
	opts.Try()
	if err := giveUpRoot(c.DataDir, c.User); err != nil {
		return nil, err
	}
	return doctor.Run(cmd.Context(), opts), nil
}

// addresses returns the addresses that serve listens on.
func (c config) addresses() []doctor.Address {
	all := []doctor.Address{
		{Check: "API address", Flag: "--listen", At: c.Listen},
		{Check: "objects address", Flag: "--objects-listen", At: c.ObjectsListen},
		{Check: "S3 address", Flag: "--s3-listen", At: c.S3Listen},
		{Check: "metrics address", Flag: "--metrics-listen", At: c.MetricsListen},
	}
	return slices.DeleteFunc(all, func(a doctor.Address) bool { return a.At == "" })
}

// isRunning reports whether an appliance accepts connections on the operator's
// socket.
func isRunning(dataDir string) bool {
	if mustExist(dataDir) != nil {
		return false
	}
	dir, err := postgres.FindSocketDir(dataDir)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("unix", server.OperatorSocket(dir), time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func showFindings(w io.Writer, found []doctor.Finding) {
	for _, f := range found {
		fmt.Fprintf(w, "%-9s%-18s%s\n", f.Level, f.Check, indent(f.Detail))
		if f.Remedy != "" {
			fmt.Fprintf(w, "%27s→ %s\n", "", indent(f.Remedy))
		}
	}
}

// indent indents all lines after the first.
func indent(text string) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 27))
}
