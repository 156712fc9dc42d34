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

// ownUser is a system user for the appliance alone. The packages create
// it too.
const ownUser = "holdfast"

// makeUserTimeout limits a program that creates a user; useradd waits 15 s for
// a lock that another process holds.
const makeUserTimeout = 30 * time.Second

// makeUser creates the system user holdfast if the appliance is a service of
// the machine, that is, uses root's default data directory. Another directory
// may be an experiment, and in a container the user would vanish before the
// data. The error says why no user was created.
func makeUser(dataDir string, log *slog.Logger) error {
	if dataDir != rootDataDir {
		return fmt.Errorf("the data directory is not %s", rootDataDir)
	}
	if inContainer() {
		return errors.New("users made in a container end with it")
	}
	return addUser(dataDir, lookSystem, log)
}

// inContainer reports whether this is a Docker, Podman or Kubernetes container,
// whose /etc comes from an image.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// addUser creates the user with a group of the same name, no password, no
// shell, and the data directory as its home, which it does not create. look
// finds the path of a program.
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

// userCommands returns the commands that create the user: useradd of
// shadow-utils, or BusyBox's adduser. Other adduser programs have different
// flags.
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

// lookSystem finds a system administration program, even if `su` has kept an
// ordinary user's PATH.
func lookSystem(name string) (string, error) {
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// noLogin returns the shell of a user that cannot log in.
func noLogin() string {
	for _, path := range []string{"/usr/sbin/nologin", "/sbin/nologin"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/false"
}

// runQuietly runs a command; its error contains the first line of output.
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
