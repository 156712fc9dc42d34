package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine/certificates"
	"holdfast/engine/postgres/binaries"
	"holdfast/internal/durable"
	"holdfast/internal/pgcontrol"
)

// Names of the files in a data directory that this package writes.
const (
	confFile  = "postgresql.conf"
	hbaFile   = "pg_hba.conf"
	identFile = "pg_ident.conf"
	logDir    = "log" // the server's log, and the output of its start
	logFile   = "postgres.log"
	startFile = "start.log"
)

const (
	preparedSetting = "max_prepared_transactions"
	locksSetting    = "max_locks_per_transaction"
)

// clusterName appears in the process titles of all instances.
const clusterName = "holdfast"

// Config holds the settings that differ between instances.
type Config struct {
	Port      int               // TCP port; it is in the socket's name even without TCP
	Listen    []string          // addresses to listen on; empty = neither TCP nor TLS
	SocketDir string            // the private directory of the Unix socket
	Settings  map[string]string // override the defaults
	AtLeast   map[string]int    // minimums of numeric settings, which override both
	// Preload are libraries that the server loads at its start beside those of the
	// settings. It starts without those that the machine lacks.
	Preload []string
	// Logins is how many connection slots the server has beyond max_connections for
	// logins that have not sent their password yet, which take a slot like a
	// session. The roles' connection limits keep these slots free of sessions.
	Logins int
}

// WriteConfig writes c to postgresql.conf in the data directory dir. It replaces
// the whole file, so that no setting of a restored directory or an older holdfast
// remains. The file takes effect at the next start or, for settings that allow
// it, at the next reload. It has a place for every prepared transaction in the
// directory, without which the server would not start: a restore may bring back
// more than a setting that was lowered since admits. WriteConfig reports whether
// the file changed.
func WriteConfig(bin binaries.Set, dir string, c Config) (changed bool, err error) {
	prepared, err := os.ReadDir(filepath.Join(dir, "pg_twophase"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("count prepared transactions: %w", err)
	}
	c.AtLeast = maps.Clone(c.AtLeast)
	if c.AtLeast == nil {
		c.AtLeast = map[string]int{}
	}
	c.AtLeast[preparedSetting] = max(c.AtLeast[preparedSetting], len(prepared))
	text, err := c.render(bin)
	if err != nil {
		return false, fmt.Errorf("write %s: %w", confFile, err)
	}
	return durable.WriteFileIfChanged(filepath.Join(dir, confFile), []byte(text), 0o600)
}

// configureReplay raises what a server that did not shut down needs for the replay of its WAL, which may have more
// prepared transactions and locks of theirs than settings admit that were lowered since it started.
func configureReplay(spec Spec) error {
	control, err := os.ReadFile(filepath.Join(spec.Dir, pgcontrol.File))
	if err != nil || pgcontrol.Content(control) == nil || pgcontrol.ShutDown(control) {
		return nil // without a valid pg_control, the start says why it fails
	}
	had, err := pgcontrol.Settings(control)
	if err != nil {
		return err
	}
	values, err := spec.Config.Values(spec.Bin)
	if err != nil {
		return err
	}
	c := spec.Config
	c.AtLeast = map[string]int{}
	maps.Copy(c.AtLeast, spec.Config.AtLeast)
	for _, name := range []string{preparedSetting, locksSetting} {
		if had[name] > number(values, name) {
			c.AtLeast[name] = had[name]
		}
	}
	_, err = WriteConfig(spec.Bin, spec.Dir, c)
	return err
}

// Values returns everything that c writes to postgresql.conf.
func (c Config) Values(bin binaries.Set) (map[string]string, error) {
	settings := c.defaults(bin)
	maps.Copy(settings, c.Settings)
	c.addLibraries(bin, settings)
	if err := c.addLogins(settings); err != nil {
		return nil, err
	}
	for name, least := range c.AtLeast {
		settings[name] = strconv.Itoa(max(number(settings, name), least))
	}
	return settings, nil
}

// number returns the value of a numeric setting that AtLeast may raise.
func number(settings map[string]string, name string) int {
	n, err := strconv.Atoi(settings[name])
	if err != nil {
		return serverDefaults[name]
	}
	return n
}

func (c Config) render(bin binaries.Set) (string, error) {
	settings, err := c.Values(bin)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Written by holdfast at every start: changes made here are lost.\n")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !settingName.MatchString(name) {
			return "", fmt.Errorf("setting name %q: letters, digits, _ and . only", name)
		}
		value, err := quoteConf(settings[name])
		if err != nil {
			return "", fmt.Errorf("setting %s: %w", name, err)
		}
		fmt.Fprintf(&b, "%s = %s\n", name, value)
	}
	return b.String(), nil
}

// addLibraries adds c.Preload to the libraries that the settings name.
func (c Config) addLibraries(bin binaries.Set, settings map[string]string) {
	for _, library := range c.Preload {
		named := settings["shared_preload_libraries"]
		if !bin.Has(library) || hasLibrary(named, library) {
			continue
		}
		if named != "" {
			library = named + "," + library
		}
		settings["shared_preload_libraries"] = library
	}
}

// addLogins raises max_connections by c.Logins. The lock table has
// max_locks_per_transaction entries for each slot. Unless the operator sets that,
// it shrinks, so that slots for logins cost little memory.
func (c Config) addLogins(settings map[string]string) error {
	if c.Logins == 0 {
		return nil
	}
	sessions, err := maxConnections(settings)
	if err != nil {
		return err
	}
	if reserved := reservedConnections(settings); sessions <= reserved {
		return fmt.Errorf("setting max_connections: %d leaves nothing beside the %d that are reserved", sessions, reserved)
	}
	const leastLocks = 32
	places := sessions + c.Logins
	settings["max_connections"] = strconv.Itoa(places)
	if _, set := c.Settings[locksSetting]; !set {
		locks, _ := strconv.Atoi(settings[locksSetting])
		settings[locksSetting] = strconv.Itoa(max(leastLocks, locks*sessions/places))
	}
	return nil
}

func maxConnections(settings map[string]string) (int, error) {
	n, err := strconv.Atoi(settings["max_connections"])
	if err != nil || n < 1 {
		return 0, fmt.Errorf("setting max_connections: %q is not a number of connections", settings["max_connections"])
	}
	return n, nil
}

// Sessions returns how many sessions the tenant's owner may have: max_connections
// less the slots reserved for the appliance. It returns 0 if max_connections is
// not a number; the server does not start then.
func (c Config) Sessions(bin binaries.Set) int {
	settings := c.defaults(bin)
	maps.Copy(settings, c.Settings)
	n, err := maxConnections(settings)
	if err != nil {
		return 0
	}
	return max(1, n-reservedConnections(settings))
}

// reservedConnections returns how many connections the appliance reserves.
func reservedConnections(settings map[string]string) int {
	superusers, _ := strconv.Atoi(settings["superuser_reserved_connections"])
	dumpers, _ := strconv.Atoi(settings["reserved_connections"])
	return superusers + dumpers
}

// serverDefaults holds PostgreSQL's own defaults of settings that AtLeast may
// name and that neither the defaults here nor the settings contain.
var serverDefaults = map[string]int{locksSetting: 64}

// settingName is the grammar of names in guc-file.l (ID, QUALIFIED_ID).
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// defaults returns the settings of an instance that is small when idle and
// durable: fsync and full_page_writes keep their default, on.
func (c Config) defaults(bin binaries.Set) map[string]string {
	s := map[string]string{
		"cluster_name":                    clusterName,
		"huge_pages":                      "off", // many small instances would use up the host's reserve
		"shared_buffers":                  "32MB",
		"work_mem":                        "4MB",
		"maintenance_work_mem":            "64MB",
		"max_connections":                 "50",
		"superuser_reserved_connections":  "5", // the appliance can connect when tenants fill the rest
		"max_worker_processes":            "4",
		"max_parallel_workers":            "2",
		"max_parallel_workers_per_gather": "1",
		"max_logical_replication_workers": "0", // tenants cannot subscribe; saves a process
		"autovacuum_max_workers":          "2",
		"jit":                             "off",
		"wal_level":                       "replica",
		"authentication_timeout":          "5s", // a silent login holds a connection slot
		"max_wal_senders":                 "0",  // the archive reads the WAL files
		"max_locks_per_transaction":       "80", // a schema of thousands of tables is created, and dumped, in one transaction
		"max_replication_slots":           "10",
		"max_slot_wal_keep_size":          "4GB", // an absent receiver must not fill the disk
		"max_wal_size":                    "256MB",
		"min_wal_size":                    "32MB",
		"hot_standby":                     "on",
		"recovery_init_sync_method":       recoverySync(),
		"restart_after_crash":             "on",
		"password_encryption":             "scram-sha-256",
		"datestyle":                       "iso, mdy",
		"default_text_search_config":      "pg_catalog.english",
		"lc_messages":                     "C", // this package parses errors, too
		"dynamic_shared_memory_type":      "posix",
	}
	if runtime.GOOS == "darwin" {
		s["wal_sync_method"] = "fsync_writethrough" // the others leave data in the drive's cache
	}
	maps.Copy(s, logSettings())
	maps.Copy(s, c.network())
	if bin.Major >= 16 {
		s["superuser_reserved_connections"] = "4"
		s["reserved_connections"] = "1" // the dumper's
	}
	if bin.Has("pg_stat_statements") {
		s["shared_preload_libraries"] = "pg_stat_statements"
		s["pg_stat_statements.max"] = "1000"
	}
	return s
}

// network returns the settings that decide which clients can reach the instance,
// and how.
func (c Config) network() map[string]string {
	listen := make([]string, len(c.Listen))
	for i, address := range c.Listen {
		listen[i] = quoteListItem(address)
	}
	s := map[string]string{
		"port":                    strconv.Itoa(c.Port),
		"listen_addresses":        strings.Join(listen, ","),
		"unix_socket_directories": quoteListItem(c.SocketDir),
		"unix_socket_permissions": "0700",
	}
	if len(c.Listen) > 0 {
		s["ssl"] = "on"
		s["ssl_cert_file"] = certificates.File
		s["ssl_key_file"] = certificates.ServerKeyFile
		s["ssl_min_protocol_version"] = "TLSv1.2"
	}
	return s
}

// quoteListItem quotes s as one item of a list setting, for PostgreSQL's
// SplitGUCList and SplitDirectoriesString: in double quotes, doubled within.
func quoteListItem(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
