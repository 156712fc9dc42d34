// Package sandbox runs a command with a database of its own: it holds a lease
// on a sandbox of an appliance, fills it, and runs the command, whose streams,
// signals and exit code are passed through.
package sandbox
