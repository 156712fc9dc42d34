package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/postgres"
)

// checkLeftovers looks for what a crashed appliance has left.
func checkLeftovers(_ context.Context, opts Options) []Finding {
	const check = "leftovers"
	var found []Finding
	if orphans := servedDirectories(opts.DataDir); !opts.Running && len(orphans) > 0 {
		found = append(found, Finding{
			check, Warning, fmt.Sprintf("%d databases run without an appliance", len(orphans)),
			"start the appliance, which adopts them, and stop it in order if that is what you want",
		})
	}
	quarantine := filepath.Join(opts.DataDir, "quarantine")
	if entries, err := os.ReadDir(quarantine); err == nil && len(entries) > 0 {
		found = append(found, Finding{
			check, Warning, fmt.Sprintf("%d data directories that no record knows are in %s", len(entries), quarantine),
			"check whether you need anything in them, and remove them",
		})
	}
	if len(found) == 0 {
		found = one(Finding{Check: check, Level: OK, Detail: "none"})
	}
	return found
}

// servedDirectories returns the data directories below dir that a postmaster
// serves.
func servedDirectories(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, "instances", "*", "*"))
	var served []string
	for _, instance := range all {
		if postgres.IsServed(instance) {
			served = append(served, instance)
		}
	}
	return served
}
