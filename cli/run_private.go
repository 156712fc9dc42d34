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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

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

// errPrivateHeld means that another process has the data directory of the private appliance.
var errPrivateHeld = errors.New("the data directory is in use")

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
	held := false // by another process, when it was tried last
	for {
		lease, err := takeFrom(ctx, dir, in, importing)
		if !errors.Is(err, errNotRunning) {
			return lease, err
		}
		err = r.startPrivate(starting, dir)
		if held = held && err != nil || errors.Is(err, errPrivateHeld); held && starting.Err() == nil {
			continue
		}
		if held && ctx.Err() == nil {
			return nil, fmt.Errorf("another process has %s and does not answer: end it, or set XDG_CACHE_HOME to another directory", dir)
		}
		if err != nil {
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
// requests. The error is errPrivateHeld if it has ended because another runs.
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
		"user": r.User, "postgres-bin": r.Search.Explicit, "private-idle": r.idle.String(),
	} {
		if value != "" {
			cmd.Args = append(cmd.Args, "--"+name, value)
		}
	}
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = "/", said, []*os.File{tell}
	cmd.Env = privateEnviron(os.Environ(), r.Search.Mirror)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = withoutInherited(cmd.Start)
	tell.Close()
	if err != nil {
		return fmt.Errorf("start a private appliance: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return awaitPrivate(ctx, ready, ended, said)
}

// privateVariables are the variables that the private appliance gets. It stays after the command, as another user if root
// started it, and others' secrets are not for it.
var privateVariables = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "GODEBUG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "KUBERNETES_SERVICE_HOST",
}

// privateMirror tells the private appliance where PostgreSQL is downloaded from: the URL may have a password, and
// everybody can read arguments.
const privateMirror = "HOLDFAST_POSTGRES_MIRROR"

// privateEnviron returns the environment of the private appliance.
func privateEnviron(environment []string, mirror string) (kept []string) {
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "LC_") || slices.Contains(privateVariables, strings.ToUpper(name)) {
			kept = append(kept, variable)
		}
	}
	if mirror != "" {
		kept = append(kept, privateMirror+"="+mirror)
	}
	return kept
}

// withoutInherited calls start, which starts a process, so that the process gets none of the files that this one was
// started with beside its standard streams. A lock on one would be held for as long as the process stays. The command
// of `run` gets them.
func withoutInherited(start func() error) error {
	open, _ := os.ReadDir("/dev/fd") // it is on every system that there is a build for
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		unix.CloseOnExec(fd)
		defer func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags) }()
	}
	return start()
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
		select { // the other process serves, or is about to end
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return errPrivateHeld
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
			syscall.CloseOnExec(3) // PostgreSQL does not need it
			c.Search.Mirror = os.Getenv(privateMirror)
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
		go endWhenIdle(ctx, cancel, idle, eng, leases, isReplaced(c.DataDir))
	})
	if _, another := errors.AsType[inUse](err); another {
		return nil
	}
	if path, found := errors.AsType[*fs.PathError](err); found && path.Op == "mkdir" && strings.HasPrefix(c.DataDir, path.Path) {
		return fmt.Errorf("%w; set XDG_CACHE_HOME to a directory that can be written", err)
	}
	return err
}

// isReplaced returns a function that reports whether the directory is gone, or another one has its path.
func isReplaced(dir string) func() bool {
	own, err := os.Stat(dir)
	return func() bool {
		now, gone := os.Stat(dir)
		return err == nil && (errors.Is(gone, fs.ErrNotExist) || gone == nil && !os.SameFile(own, now))
	}
}

// endWhenIdle calls end when no sandbox was held for that long, or none is held and the data directory was replaced: then
// no `run` finds this appliance any more.
func endWhenIdle(ctx context.Context, end context.CancelFunc, stay time.Duration, eng *engine.Engine, leases *operator.Leases, replaced func() bool) {
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
		if replaced() && leases.CloseIdle() {
			end()
			return
		}
		since := time.Since(idle)
		if since > linger && (since > privateGrace || eng.Databases.WarmPoolReady()) && leases.CloseIdle() {
			end()
			return
		}
	}
}
