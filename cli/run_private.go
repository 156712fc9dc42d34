package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/cli/sandbox"
	"holdfast/engine"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/operator"
)

// The private appliance of `run` is a process in a session of its own, so it outlives
// the `run` that started it while others use it. The lock on its data directory ensures
// that only one runs. Each start cleans up after an appliance that was killed.

// privateCommand is the hidden command that runs the private appliance.
const privateCommand = "private-appliance"

const (
	// privateGrace is how long it waits for the first sandbox at least.
	privateGrace = 5 * time.Second
	// privateIdle is how long it stays without a sandbox, unless --private-idle says
	// otherwise: the next `run` then starts its command at once. It stays at least
	// until the warm pool is full, but for that not longer than privateGrace.
	privateIdle = 10 * time.Minute
	// privateTimeout is how long `run` tries to start it.
	privateTimeout = 2 * time.Minute
)

const privateDirText = "holdfast/sandbox in the user's\ncache directory"

// privateDir returns the data directory of the private appliance. For root it
// is outside root's home: PostgreSQL runs as another user, who cannot enter
// that.
func privateDir() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		cache = "/var/cache"
		if os.Geteuid() != 0 {
			var err error
			if cache, err = os.UserCacheDir(); err != nil {
				return "", fmt.Errorf("find the cache directory: %w; set XDG_CACHE_HOME", err)
			}
		}
	}
	return filepath.Join(cache, "holdfast", "sandbox"), nil
}

// takePrivate requests a sandbox from the private appliance, and starts one if
// none runs.
func (r *sandboxRun) takePrivate(ctx context.Context, in operator.NewSandbox, importing func(operator.Importing)) (*sandbox.Lease, error) {
	dir, err := privateDir()
	if err != nil {
		return nil, err
	}
	in.Organization, r.tookPrivate = model.DefaultName, true
	starting, cancel := context.WithTimeout(ctx, privateTimeout) // an import may take any time
	defer cancel()
	for {
		lease, err := takeFrom(ctx, dir, in, importing)
		if !errors.Is(err, errNotRunning) {
			return lease, err
		}
		if err := r.startPrivate(starting, dir); err != nil {
			return nil, err
		}
	}
}

// clearPrivate starts a private appliance to clean up after a killed one. The
// next `run` would do so too.
func (r *sandboxRun) clearPrivate(ctx context.Context) {
	if dir, err := privateDir(); err == nil && r.tookPrivate {
		_ = r.startPrivate(ctx, dir)
	}
}

// startPrivate starts the private appliance and returns once it accepts
// requests, or has ended because another runs.
func (r *sandboxRun) startPrivate(ctx context.Context, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	said, err := os.CreateTemp("", "holdfast-run-")
	if err != nil {
		return fmt.Errorf("make a log: %w", err)
	}
	defer said.Close()
	if err := os.Remove(said.Name()); err != nil {
		return fmt.Errorf("make a log: %w", err)
	}
	ready, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(program, privateCommand, "--data-dir", dir)
	for name, value := range map[string]string{
		"user": r.User, "postgres-bin": r.Search.Explicit, "postgres-mirror": r.Search.Mirror, "private-idle": r.idle.String(),
	} {
		if value != "" {
			cmd.Args = append(cmd.Args, "--"+name, value)
		}
	}
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = "/", said, []*os.File{tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	tell.Close()
	if err != nil {
		return fmt.Errorf("start a private appliance: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return awaitPrivate(ctx, ready, ended, said)
}

// awaitPrivate waits until the private appliance serves or has ended: either
// closes the pipe.
func awaitPrivate(ctx context.Context, ready *os.File, ended <-chan error, said io.ReadSeeker) error {
	defer context.AfterFunc(ctx, func() { ready.Close() })()
	word := make([]byte, 1)
	if n, _ := ready.Read(word); n == 1 {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start a private appliance: %w", ctx.Err())
	}
	if err := <-ended; err == nil {
		// Another process has the data directory: it serves, or is about to
		// end.
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	_, _ = said.Seek(0, io.SeekStart)
	text, _ := io.ReadAll(said)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("start a private appliance: %s", strings.TrimPrefix(lines[len(lines)-1], "holdfast: "))
}

func newPrivateAppliance() *cobra.Command {
	var c config
	var idle time.Duration
	cmd := &cobra.Command{
		Use: privateCommand, Short: "The appliance that `run` starts for itself", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return servePrivately(cmd.Context(), c, idle, cmd.ErrOrStderr())
		},
	}
	registerIdle(cmd.Flags(), &idle)
	c.registerCommon(cmd.Flags())
	c.registerPostgres(cmd.Flags())
	return cmd
}

// registerIdle registers the flag that bounds how long the private appliance stays.
func registerIdle(flags *pflag.FlagSet, idle *time.Duration) {
	flags.DurationVar(idle, "private-idle", privateIdle, "how long the private appliance stays after its last database")
}

// servePrivately serves until no sandbox was held for that long.
func servePrivately(ctx context.Context, c config, idle time.Duration, stderr io.Writer) error {
	c.Listen, c.Config.Listen, c.PublicHost = "127.0.0.1:0", []string{"127.0.0.1"}, "127.0.0.1"
	c.FirstPort = 20000 + rand.IntN(11000) // below the ephemeral ports
	c.LastPort = c.FirstPort + 1000
	c.LogFormat, c.LogLevel, c.Warm = "text", "warn", 1
	c.private = true
	c.NoFirstKey, c.NoExports, c.NoVerification, c.AuditKeep = true, true, true, 1000
	c.MaxObjectBytes = 1 << 30
	c.Allowlist, c.Rates = loopback(), core.DefaultRates()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := serve(ctx, c, io.Discard, stderr, func(eng *engine.Engine, leases *operator.Leases) {
		ready := os.NewFile(3, "ready")
		_, _ = ready.Write([]byte{1}) // the parent may have stopped waiting
		ready.Close()
		go endWhenIdle(ctx, cancel, idle, eng, leases)
	})
	if _, another := errors.AsType[inUse](err); another {
		return nil
	}
	if path, found := errors.AsType[*fs.PathError](err); found && path.Op == "mkdir" && strings.HasPrefix(c.DataDir, path.Path) {
		return fmt.Errorf("%w; set XDG_CACHE_HOME to a directory that can be written", err)
	}
	return err
}

// endWhenIdle calls end when no sandbox was held for that long.
func endWhenIdle(ctx context.Context, end context.CancelFunc, stay time.Duration, eng *engine.Engine, leases *operator.Leases) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	idle, linger := time.Now(), max(privateGrace, stay)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if leases.Held() > 0 {
			idle, linger = time.Now(), stay
			continue
		}
		since := time.Since(idle)
		if since > linger && (since > privateGrace || eng.Databases.WarmPoolReady()) && leases.CloseIdle() {
			end()
			return
		}
	}
}
