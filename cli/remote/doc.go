// Package remote holds the commands that speak to an appliance over HTTP, by
// cli/client and nothing else: whatever they can do, any client can.
//
// A task is one run of a command: its flags, where the appliance is, and the
// client for it. Keys come from a profile or from HOLDFAST_API_KEY, never from
// an argument. Names work wherever ids do (names.go). Results go to standard
// output, as tables or, with --json, as the API answers them; progress,
// questions and remarks go to standard error, and only to a terminal.
package remote
