package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// ownUser is the system user that nothing but the appliance runs as. The Debian
// package makes it too.
const ownUser = "holdfast"

// makeUserTimeout bounds a program that makes a user; useradd waits 15 s for a
// lock that another holds.
const makeUserTimeout = 30 * time.Second

// makeUser makes the system user holdfast for an appliance that is set up as a
// service of the machine: in root's default data directory. With another one
// somebody may be trying things out, and in a container the user would be gone
// before the data is. The error says why there is no user.
func makeUser(dataDir string, log *slog.Logger) error {
	if dataDir != rootDataDir {
		return fmt.Errorf("the data directory is not %s", rootDataDir)
	}
	if inContainer() {
		return errors.New("users made in a container end with it")
	}
	return addUser(dataDir, lookSystem, log)
}

// inContainer reports whether this is a container of Docker, Podman or
// Kubernetes, whose /etc comes from an image.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// addUser makes the user with a group of the same name, no password, no shell,
// and the data directory, which is not made here, as its home. Look finds the
// path of a program.
func addUser(dataDir string, look func(name string) (string, error), log *slog.Logger) error {
	program, steps, err := userCommands(dataDir, look)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := runQuietly(step); err != nil {
			return err
		}
	}
	log.Info("made a system user for the new data directory; --user chooses another", "user", ownUser, "with", program)
	return nil
}

// userCommands returns the commands that make the user: useradd of
// shadow-utils, or those of BusyBox. Another adduser has other flags.
func userCommands(dataDir string, look func(name string) (string, error)) (program string, steps [][]string, err error) {
	shell := noLogin()
	_, noGroup := user.LookupGroup(ownUser)
	if path, err := look("useradd"); err == nil {
		group := []string{"--user-group"}
		if noGroup == nil {
			group = []string{"--gid", ownUser}
		}
		add := append([]string{path, "--system"}, group...)
		return path, [][]string{append(add, "--home-dir", dataDir, "--no-create-home", "--shell", shell, ownUser)}, nil
	}
	path, err := look("adduser")
	if target, _ := filepath.EvalSymlinks(path); err != nil || filepath.Base(target) != "busybox" {
		return "", nil, errors.New("there is neither useradd nor the adduser of BusyBox")
	}
	if noGroup != nil {
		steps = append(steps, []string{filepath.Join(filepath.Dir(path), "addgroup"), "-S", ownUser})
	}
	return path, append(steps, []string{path, "-S", "-D", "-H", "-h", dataDir, "-s", shell, "-G", ownUser, ownUser}), nil
}

// lookSystem finds a program of the system administrator, also where `su` has
// left the PATH of an ordinary user.
func lookSystem(name string) (string, error) {
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// noLogin is the shell of a user that does not sign in.
func noLogin() string {
	for _, path := range []string{"/usr/sbin/nologin", "/sbin/nologin"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/false"
}

// runQuietly runs a command; its first line of output is the error's.
func runQuietly(command []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), makeUserTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w: %s", filepath.Base(command[0]), err, said)
	}
	return nil
}
