// Package doctor looks at the machine an appliance runs on, or is to run on,
// and says what is wrong with it and what to do. It changes nothing and fetches
// nothing.
package doctor

import (
	"context"

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
	Listen              string   // host:port of the API
	PostgresListen      []string // addresses of the databases
	FirstPort, LastPort int      // ports of the databases
	DiskFree            float64  // share of the disk below which the appliance warns
	Running             bool     // an appliance serves DataDir now
}

// Run makes every check, in the order in which a person would fix things.
func Run(ctx context.Context, opts Options) []Finding {
	var found []Finding
	for _, check := range []func(context.Context, Options) []Finding{
		checkPostgres, checkClientTools, checkDataDirectory, checkDisk, checkMemory,
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
