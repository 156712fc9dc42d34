package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/server"
	"holdfast/server/operator"
)

// shutdownTimeout limits the orderly shutdown.
const shutdownTimeout = 90 * time.Second

func newServe() *cobra.Command {
	var c config
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the appliance",
		Long: "Run the appliance: find PostgreSQL, bring up every database, and serve the API and the console\n" +
			"until SIGINT or SIGTERM. Another one more than a second later ends it at once: databases may go on, and the\n" +
			"next start adopts them. Every flag can also be given as a variable (--data-dir as HOLDFAST_DATA_DIR) or in a config file\n" +
			"(data_dir = \"…\").",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd.Flags()); err != nil {
				return err
			}
			server.TuneRuntime(c.Offsite.URL != "")
			return serve(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr(), nil)
		},
	}
	c.registerServe(cmd.Flags())
	return cmd
}

// serve runs the appliance until ctx ends. It makes the checks that may fail
// before it changes anything, and first binds the addresses, which may need
// root. It calls serving, unless that is nil, once the appliance accepts
// requests.
func serve(ctx context.Context, c config, stdout, stderr io.Writer, serving func(*engine.Engine, *operator.Leases)) (err error) {
	log, err := newLog(stderr, c.LogFormat, c.LogLevel)
	if err != nil {
		return err
	}
	defer tellOfKill(log)()
	if err := c.readOffsiteKeys(); err != nil {
		return err
	}
	sockets, err := listen(c)
	if err != nil {
		return err
	}
	defer sockets.close()
	if c.runsAs, err = giveUpRootOwning(c.DataDir, c.User, log); err != nil {
		return err
	}
	if err := forgetLibpqEnvironment(); err != nil {
		return err
	}
	if err := makeDataDir(c.DataDir); err != nil {
		return err
	}
	if c.prepare != nil {
		if err := c.prepare(log); err != nil {
			return err
		}
	}
	w := watch(sockets.metrics)
	cfg := c.engine()
	cfg.Observe = func(event model.Event) {
		w.event(event)
		if c.told != nil {
			c.told(event)
		}
	}
	eng, err := openEngine(cfg, log)
	if err != nil {
		return withSpaceRemedy(err, c.DataDir)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		err = errors.Join(err, eng.Close(closing))
	}()
	return withSpaceRemedy(run(ctx, c, eng, w, sockets, log, stdout, serving), c.DataDir)
}

// withSpaceRemedy adds to an error from a full disk what frees space on it while
// no appliance runs.
func withSpaceRemedy(err error, dataDir string) error {
	if err == nil || !core.IsDiskFull(err) {
		return err
	}
	return fmt.Errorf("%w: free space on the disk of the data directory; `holdfast admin trash empty --data-dir %s` permanently removes what was deleted", err, dataDir)
}

// forgetLibpqEnvironment unsets the variables that tell libpq and pgx where to
// connect (PGHOST, PGSERVICE, …): they are for another database.
func forgetLibpqEnvironment() error {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("forget %s: %w", name, err)
		}
	}
	return nil
}

// run starts the engine, announces the addresses, and serves.
func run(ctx context.Context, c config, eng *engine.Engine, w *watching, sockets sockets, log *slog.Logger, stdout io.Writer,
	serving func(*engine.Engine, *operator.Leases),
) error {
	if err := eng.Start(ctx); err != nil {
		return err
	}
	if err := sockets.withTLS(c, eng); err != nil {
		return err
	}
	base := cmp.Or(c.PublicURL, c.baseURL(c.Listen, sockets.main.Addr()))
	if w.metrics != nil {
		w.metrics.Watch(eng, log)
	}
	leases := operator.NewLeases()
	srv, err := server.New(eng, w.serve(server.Options{
		BaseURL:           base,
		ObjectsURL:        sockets.objectsURL(c),
		S3URL:             sockets.s3URL(c),
		S3WebsiteURL:      c.S3WebsiteURL,
		S3Listener:        sockets.s3,
		StrictTransport:   c.strictTransport(),
		TrustedProxies:    c.proxies,
		StandardForwarded: c.ForwardedHeader == forwardedStandard,
		OperatorSocket:    server.OperatorSocket(eng.SocketDir()),
		Leases:            leases,
		Serving: func() {
			tellServiceManager(log, daemon.SdNotifyReady)
			if serving != nil {
				serving(eng, leases)
			}
		},
		Log: log,
	}))
	if err != nil {
		return err
	}
	// Initialize right before the key is shown: an earlier failure must not use
	// up the first start and its key.
	first, err := eng.Access.Initialize(!c.NoFirstKey)
	if err != nil {
		return fmt.Errorf("make the first organization: %w", err)
	}
	setup, err := setupToken(eng, first)
	if err != nil {
		return err
	}
	c.runsAs.tell(log)
	if err := remote.Print(stdout, func(w io.Writer) { announce(w, eng, c.DataDir, base, sockets.s3URL(c), setup, first) }); err != nil {
		log.Warn("say where everything is; a first API key that nobody was shown is replaced by the next start", "error", err)
	} else if first != nil {
		if err := eng.Access.KeyShown(); err != nil {
			return fmt.Errorf("note that the first key was shown: %w", err)
		}
	}
	// Serve may return before AfterFunc runs: notify in either case, and
	// before anything is closed.
	stopping := sync.OnceFunc(func() { tellServiceManager(log, daemon.SdNotifyStopping) })
	defer stopping()
	defer context.AfterFunc(ctx, stopping)()
	quiet, stop := context.WithCancel(ctx)
	var returning sync.WaitGroup
	defer returning.Wait()
	defer stop()
	returning.Go(func() { server.ReturnMemory(quiet, log) })
	return srv.Serve(ctx, sockets.main, sockets.objects)
}

// tellServiceManager notifies systemd, or another manager that supports
// sd_notify(3), of a state. Without a manager it does nothing.
func tellServiceManager(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("tell the service manager", "state", state, "error", err)
	}
}

// setupToken returns the token of a setup link while no user can sign in.
func setupToken(eng *engine.Engine, first *access.FirstStart) (model.Secret, error) {
	if first != nil {
		return first.Setup, nil
	}
	return eng.Access.SetupLinkRenew()
}

// announce prints what a user needs to start. It prints only to standard
// output: the key and the link are secrets.
func announce(w io.Writer, eng *engine.Engine, dataDir, baseURL, s3URL string, setup model.Secret, first *access.FirstStart) {
	bin := eng.Binaries()
	fmt.Fprintf(w, "holdfast %s\n\n", version())
	fmt.Fprintf(w, "  data directory  %s\n", dataDir)
	fmt.Fprintf(w, "  PostgreSQL      %s (%s, %s)\n", bin.Version, bin.Origin, bin.Dir)
	fmt.Fprintf(w, "  API             %s/v1\n", baseURL)
	if s3URL != "" {
		fmt.Fprintf(w, "  S3 endpoint     %s\n", s3URL)
	}
	if strings.HasPrefix(baseURL, "https:") {
		fmt.Fprintf(w, "  CA certificate  %s\n", eng.Databases.CAFile())
	}
	if setup.IsZero() {
		fmt.Fprintf(w, "  console         %s/\n", baseURL)
	} else {
		fmt.Fprintf(w, "  console         %s%s\n", baseURL, access.SetupPath(setup))
		fmt.Fprintf(w, "                  (set-up link: works once, for %.0f minutes)\n", access.SetupLinkLife.Minutes())
	}
	if first != nil && !first.Key.IsZero() {
		fmt.Fprintf(w, "  API key         %s\n", first.Key.Reveal())
		fmt.Fprintln(w, "                  (full access, shown only this once)")
	}
	fmt.Fprintln(w)
}

// engine returns the engine's configuration.
func (c config) engine() core.Config {
	cfg := c.Config
	cfg.Search.CacheDir = filepath.Join(c.DataDir, "postgres")
	cfg.SandboxSuperuser = c.private
	cfg.Exports, cfg.VerifyBackups, cfg.Offsite.Verify = !c.NoExports, !c.NoVerification, !c.NoOffsiteVerification
	cfg.WebsiteURL = c.S3WebsiteURL
	cfg.Advice, cfg.Version, cfg.Clock = c.advice(), version(), clock
	return cfg
}

// inUse means that another process holds the data directory.
type inUse struct{ error }

// openEngine opens the data directory. Its errors fit in one line and name the
// remedy.
func openEngine(c core.Config, log *slog.Logger) (*engine.Engine, error) {
	c.Log, c.Search.Log = log, log
	eng, err := engine.Open(c)
	if errors.Is(err, meta.ErrLocked) {
		return nil, inUse{fmt.Errorf("another holdfast is using %s: stop it first, or name another --data-dir", c.DataDir)}
	}
	if _, newer := errors.AsType[*meta.NewerFormatError](err); newer {
		return nil, fmt.Errorf("%s: %w", c.DataDir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", c.DataDir, err)
	}
	return eng, nil
}
