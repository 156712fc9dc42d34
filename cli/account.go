package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is a user that the appliance can run as.
type account struct {
	name     string
	uid, gid int
}

// choice is the account to switch to, and the reason.
type choice struct {
	account
	reason string
	shared bool // other services may run as this user too
}

// tell logs which user the process switched to; nothing if it was not root.
func (c choice) tell(log *slog.Logger) {
	switch {
	case c.name == "":
	case c.shared:
		log.Warn("runs as a user that other services may run as too; make a system user holdfast, or name one with --user", "user", c.name, "reason", c.reason)
	default:
		log.Info("runs as an ordinary user; --user chooses which", "user", c.name, "reason", c.reason)
	}
}

// chooseAccount picks the account to switch to: the given one, else the owner of
// the data directory, else holdfast, else postgres, else nobody. If the data
// directory is absent and the user holdfast does not exist, makeUser may create
// it; makeUser is nil for commands that create nothing.
func chooseAccount(dataDir, name string, makeUser func() error) (choice, error) {
	owner, owned, err := ownerOf(dataDir)
	if err != nil {
		return choice{}, err
	}
	if name != "" {
		wanted, err := lookup(name)
		if err == nil && owned && owner.uid != 0 && owner.uid != wanted.uid {
			err = fmt.Errorf("--user %s: the data directory %s belongs to %s", name, dataDir, owner.name)
		}
		return choice{account: wanted, reason: "--user names it"}, err
	}
	if owned && owner.uid != 0 {
		return choice{account: owner, reason: "it owns the data directory"}, nil
	}
	if found, err := lookup(ownUser); err == nil {
		return choice{account: found, reason: "the data directory is new"}, nil
	}
	reason := "there is no user " + ownUser
	if makeUser != nil && !owned {
		refused := makeUser()
		if found, err := lookup(ownUser); err == nil {
			return choice{account: found, reason: "it was made for the new data directory"}, nil
		}
		reason += fmt.Sprintf(", and none was made: %v", refused)
	}
	for _, candidate := range []string{"postgres", "nobody"} {
		if found, err := lookup(candidate); err == nil {
			return choice{account: found, reason: reason, shared: true}, nil
		}
	}
	return choice{}, fmt.Errorf("run as root, %s, and there is neither postgres nor nobody to become: name a user with --user", reason)
}

func lookup(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, usageError{fmt.Errorf("--user %s: %w", name, err)}
	}
	found := account{name: name}
	if found.uid, err = strconv.Atoi(u.Uid); err != nil {
		return found, fmt.Errorf("--user %s: %w", name, err)
	}
	if found.gid, err = strconv.Atoi(u.Gid); err != nil {
		return found, fmt.Errorf("--user %s: %w", name, err)
	}
	if found.uid == 0 {
		return found, usageError{fmt.Errorf("--user %s: PostgreSQL does not run as root: name another user", name)}
	}
	return found, nil
}

func ownerOf(dir string) (_ account, found bool, _ error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return account{}, false, nil
	}
	if err != nil {
		return account{}, false, fmt.Errorf("look at the data directory: %w", err)
	}
	return ownerIn(info), true, nil
}

func ownerIn(info fs.FileInfo) account {
	stat := info.Sys().(*syscall.Stat_t)
	return accountOf(int(stat.Uid), int(stat.Gid))
}

// accountOf returns the account of a uid, with its group in the user database: a
// directory that root made for a user still has root's group. For a uid without an
// entry, the group is the directory's, or has the number of the user in place of root's.
func accountOf(uid, dirGID int) account {
	owner := account{name: strconv.Itoa(uid), uid: uid, gid: dirGID}
	if dirGID == 0 {
		owner.gid = uid
	}
	if u, err := user.LookupId(owner.name); err == nil {
		owner.name = u.Username
		if gid, err := strconv.Atoi(u.Gid); err == nil {
			owner.gid = gid
		}
	}
	return owner
}
