// Package sandbox runs a command with a database of its own. It leases a
// sandbox from an appliance, fills it and runs the command. It passes streams,
// signals and the exit code through.
package sandbox
