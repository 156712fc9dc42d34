// Package doctor checks the machine that an appliance runs on, or will run on.
// It reports what is wrong and what to do. It changes nothing and downloads
// nothing.
package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"holdfast/engine/postgres/binaries"
)

// Level is the severity of a finding.
type Level string

// The levels. A problem keeps the appliance, or a part of it, from working; a
// warning will do so sooner or later.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // except for OK
}

// Options are the settings of an appliance on this machine.
type Options struct {
	DataDir             string
	Search              binaries.Search
	Addresses           []Address // besides the databases'
	PostgresListen      []string  // addresses of the databases
	FirstPort, LastPort int       // ports of the databases
	TLSCert, TLSKey     string    // "" when not given
	WebhookSecret       string    // the file; "" without webhooks
	DiskFree            float64   // share of the disk below which the appliance warns
	Running             bool      // an appliance serves DataDir now

	making error // why the data directory cannot be created
}

// Address is an address that an appliance listens on.
type Address struct {
	Check string // the Check of its findings
	Flag  string // the flag that sets another address
	At    string // host:port

	err error // why it cannot be bound
}

// Try tries what a start does before it drops root, and undoes it. Run reports
// the result.
func (o *Options) Try() {
	if _, err := os.Stat(o.DataDir); errors.Is(err, fs.ErrNotExist) {
		o.making = access(nearest(o.DataDir), unix.W_OK|unix.X_OK)
	}
	if o.Running {
		return
	}
	for i := range o.Addresses {
		a := &o.Addresses[i]
		l, err := net.Listen("tcp", a.At)
		if a.err = err; err == nil {
			defer l.Close() // on return: no two may be equal
		}
	}
}

// Run makes every check, in the order in which a person would fix the problems. The
// caller calls Try first and, if it is root, then becomes the user that the
// appliance runs as.
func Run(ctx context.Context, opts Options) []Finding {
	var found []Finding
	for _, check := range []func(context.Context, Options) []Finding{
		checkPostgres, checkClientTools, checkDataDirectory, checkCertificate, checkWebhookSecret, checkDisk, checkMemory,
		checkListen, checkPorts, checkClock, checkOpenFiles, checkLeftovers,
	} {
		found = append(found, check(ctx, opts)...)
	}
	return found
}

// Worst returns the most severe level of all findings.
func Worst(found []Finding) Level {
	worst := OK
	for _, f := range found {
		if f.Level == Problem || f.Level == Warning && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

func one(f Finding) []Finding { return []Finding{f} }
