// Package doctor looks at the machine an appliance runs on, or is to run on,
// and says what is wrong with it and what to do. It changes nothing and fetches
// nothing.
package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"holdfast/engine/postgres"
)

// Level is how bad a finding is.
type Level string

// The levels. A problem keeps the appliance, or a part of it, from working; a
// warning will sooner or later.
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
	Remedy string `json:"remedy,omitempty"` // for all but OK
}

// Options are what an appliance on this machine is, or would be, told.
type Options struct {
	DataDir             string
	Search              postgres.Search
	Addresses           []Address // beside the databases'
	PostgresListen      []string  // addresses of the databases
	FirstPort, LastPort int       // ports of the databases
	TLSCert, TLSKey     string    // "" when not given
	WebhookSecret       string    // the file; "" without webhooks
	DiskFree            float64   // share of the disk below which the appliance warns
	Running             bool      // an appliance serves DataDir now

	making error // why the data directory cannot be made
}

// Address is one that an appliance listens on.
type Address struct {
	Check string // what a finding about it is called
	Flag  string // that names another
	At    string // host:port

	err error // why it cannot be had
}

// Try does what a start does before it gives up root, and undoes it. Run says
// what came of it.
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
			defer l.Close() // at the end: no two may have the same
		}
	}
}

// Run makes every check, in the order in which a person would fix things. Try
// comes before it, and in between root becomes the user that the appliance runs as.
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

// Worst returns the gravest level of all findings.
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
