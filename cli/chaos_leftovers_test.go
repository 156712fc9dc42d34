package cli_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// checkLeftovers checks for orphaned processes, ports and files.
func (c *chaos) checkLeftovers(ctx context.Context, api *client.Client) {
	listed := collect(c, api.Databases(ctx, client.DatabaseOptions{}), func(d wire.Database) string { return d.ID })
	for what, left := range map[string]func() string{
		"only known processes":   func() string { return c.leftProcesses(listed) },
		"only known ports":       func() string { return c.leftPorts(listed) },
		"only known directories": func() string { return c.leftDirectories(listed) },
		"only known files":       func() string { return c.leftFiles(ctx, api, listed) },
		"only known sockets":     func() string { return c.leftSockets() },
	} {
		if !c.within(what, left) {
			return
		}
	}
	for id := range listed {
		c.within("one slot, advanced, at "+id, func() string { return c.leftSlots(ctx, api, id) })
	}
}

// inData splits a path inside the data directory; top is "" for a path outside.
func (c *chaos) inData(path string) (top, rest string) {
	inner, ok := strings.CutPrefix(path, c.m.dataDir+"/")
	if !ok {
		return "", ""
	}
	top, rest, _ = strings.Cut(inner, "/")
	return top, rest
}

// leftProcesses names a process that serves or uses the data directory but is
// neither a server of a database, warm pool or verification, nor a child of one.
func (c *chaos) leftProcesses(listed map[string]wire.Database) string {
	serving, postmasters := map[string]int{}, map[int]bool{}
	all := tasks()
	for _, t := range all {
		if t.isPostmaster(c.m.dataDir) {
			postmasters[t.pid] = true
		}
	}
	for _, t := range all {
		if t.pid == c.m.process.Process.Pid || !strings.Contains(t.command, c.m.dataDir) && !strings.HasPrefix(t.directory, c.m.dataDir) {
			continue
		}
		top, rest := c.inData(strings.TrimSuffix(t.directory, " (deleted)"))
		id, _, _ := strings.Cut(rest, "/")
		_, known := listed[id]
		known = known || warmServers(c.m.dataDir)[id] != 0
		switch {
		case strings.HasSuffix(t.directory, " (deleted)"):
			return "in a directory that is gone: " + t.String()
		case postmasters[t.parent] || t.parent == c.m.process.Process.Pid && top != "instances":
		case !postmasters[t.pid]:
			return "a stranger: " + t.String()
		case top == "instances" && known:
			serving[id]++
		case top != "verification" && top != "warm":
			return "a server of nothing: " + t.String()
		}
	}
	for id, d := range listed {
		if sleeps := d.SleepAfterSeconds != nil && serving[id] == 0; serving[id] != 1 && !sleeps {
			return fmt.Sprintf("%s has %d servers", id, serving[id])
		}
	}
	return ""
}

// leftPorts names an open port of the range that belongs to no database, or a
// database's port that is not open.
func (c *chaos) leftPorts(listed map[string]wire.Database) string {
	first, last, _ := strings.Cut(c.m.ports, "-")
	lowest, _ := strconv.Atoi(first)
	highest, _ := strconv.Atoi(last)
	open := map[int]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			return err.Error()
		}
		for _, port := range listeningPorts(string(text)) {
			open[port] = port >= lowest && port <= highest
		}
	}
	for _, d := range listed {
		if !open[d.Port] {
			return fmt.Sprintf("the port %d of %s is not open", d.Port, d.ID)
		}
		delete(open, d.Port)
	}
	for _, port := range warmServers(c.m.dataDir) {
		delete(open, port)
	}
	for port, ours := range open {
		if ours {
			return fmt.Sprintf("the port %d is open and no database's", port)
		}
	}
	return ""
}

// listeningPorts parses a table of proc_net_tcp(5): the second column is the
// local address with the port in hexadecimal, and the fourth is 0A for a
// listening socket.
func listeningPorts(table string) (ports []int) {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		if port, err := strconv.ParseInt(hex, 16, 32); err == nil {
			ports = append(ports, int(port))
		}
	}
	return ports
}

// leftDirectories names a directory that belongs to no database.
func (c *chaos) leftDirectories(listed map[string]wire.Database) string {
	for _, top := range []string{"instances", "backups"} {
		for _, id := range names(filepath.Join(c.m.dataDir, top)) {
			if _, known := listed[id]; !known && (top == "backups" || warmServers(c.m.dataDir)[id] == 0) {
				return top + "/" + id
			}
		}
	}
	for _, db := range c.databases {
		generations := names(filepath.Join(c.m.dataDir, "instances", db.id))
		if want := map[bool]int{true: 1, false: 2}[db.other == nil]; len(generations) != want {
			return fmt.Sprintf("instances/%s has %v, and there shall be %d", db.id, generations, want)
		}
	}
	if orphans := names(filepath.Join(c.m.dataDir, "quarantine")); len(orphans) > 0 {
		return fmt.Sprint("in quarantine: ", orphans)
	}
	return c.leftPrepared()
}

// leftPrepared names something in the warm pools that is not wanted.
func (c *chaos) leftPrepared() string {
	pool := filepath.Join(c.m.dataDir, "warm")
	if c.oldest == c.newest {
		return leftInPool(pool)
	}
	return cmp.Or(leftInPool(pool, "major-"+c.oldest), leftInPool(filepath.Join(pool, "major-"+c.oldest)))
}

// leftInPool names something in a warm pool that is not wanted: one warm server, two prepared directories, their template
// and the pools of other versions are.
func leftInPool(dir string, others ...string) string {
	count := map[string]int{}
	for _, name := range names(dir) {
		if slices.Contains(others, name) {
			continue
		}
		kind, _, _ := strings.Cut(name, "-")
		count[kind]++
	}
	if count["server"] > 1 || count["prepared"] > 2 || count["template"] > 1 || len(count) > 3 {
		return fmt.Sprintf("in the warm pool %s: %s", dir, names(dir))
	}
	return ""
}

func names(dir string) (all []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// topLevel is the expected content of a data directory.
var topLevel = []string{
	"backups", "blobs", "holdfast.db", "instances", "metadata", "postgres", "verification", "run", "secret.key", "warm", "tls", "offsite", "reserve",
}

// leftFiles names an orphaned file.
func (c *chaos) leftFiles(ctx context.Context, api *client.Client, listed map[string]wire.Database) string {
	for _, name := range names(c.m.dataDir) {
		if !slices.Contains(topLevel, name) {
			return name
		}
	}
	for id := range listed {
		completed := 0
		for _, b := range collect(c, api.Backups(ctx, id, client.BackupOptions{}), func(b wire.Backup) string { return b.ID }) {
			if b.Status == wire.BackupCompleted {
				completed++
			}
		}
		if kept := c.m.manifests(id); kept != completed {
			return fmt.Sprintf("%d manifests for %d backups of %s", kept, completed, id)
		}
	}
	return c.leftBlobs(ctx, api, listed)
}

// inJournal is the size up to which an object has no file of its own.
const inJournal = 64 << 10

// leftBlobs compares the blob files with the objects and exports.
func (c *chaos) leftBlobs(ctx context.Context, api *client.Client, listed map[string]wire.Database) string {
	least := 0
	for _, b := range c.buckets {
		for i := range b.objects {
			if v := b.objects[i].known()[0]; v.size > inJournal || v.resumable {
				least++
			}
		}
	}
	most := least + c.unsureUploads
	for id := range listed {
		switch x, err := api.GetExport(ctx, id, ""); {
		case client.CodeOf(err) == wire.CodeNotFound:
		case err != nil:
			return err.Error()
		case x.Status == wire.ExportReady && *x.SizeBytes > inJournal:
			most++
			least++
		default: // ready exports of this size, or one in progress
			most++
		}
	}
	if files := c.m.blobs(); files < least || files > most {
		return fmt.Sprintf("%d files of blobs, and there shall be %d to %d", files, least, most)
	}
	return ""
}

// relays is the directory through which imports reach their target; it is empty
// without imports.
const relays = "i"

// leftSockets names a socket without a server.
func (c *chaos) leftSockets() string {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err.Error()
	}
	dir := filepath.Join(c.m.dataDir, "run")
	for _, name := range names(dir) {
		path := filepath.Join(dir, strings.TrimSuffix(name, ".lock"))
		if name != relays && !strings.Contains(string(text), path+"\n") {
			return path
		}
	}
	return strings.Join(names(filepath.Join(dir, relays)), " ")
}

// leftSlots checks a database's replication slots: there is only the
// appliance's.
func (c *chaos) leftSlots(ctx context.Context, api *client.Client, id string) string {
	owner, err := api.GetDatabaseConnection(ctx, id, client.ConnectionOptions{})
	if err != nil {
		return err.Error()
	}
	conn, err := pgx.Connect(ctx, owner.ConnectionURL)
	if err != nil {
		return err.Error()
	}
	defer conn.Close(ctx)
	var slots, advanced int
	err = conn.QueryRow(ctx, `
		select count(*), count(*) filter (where wal_status = 'reserved' and
			pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn) < 2 * pg_size_bytes(current_setting('wal_segment_size')))
		from pg_replication_slots`).Scan(&slots, &advanced)
	if err != nil {
		return err.Error()
	}
	if slots != 1 || advanced != 1 {
		return fmt.Sprintf("%d slots, of which %d are advanced", slots, advanced)
	}
	return ""
}
