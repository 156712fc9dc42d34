// Package remote holds the commands that use an appliance over HTTP, only
// through cli/client: any client can do what they do.
//
// A task is one run of a command: its flags, the appliance's address, and the
// client. Keys come from a profile or from HOLDFAST_API_KEY, never from an
// argument. Names work wherever ids do (names.go). Results go to standard
// output, as tables or, with --json, as the API returns them. Progress,
// questions and remarks go to standard error; progress is shown only on a
// terminal.
package remote
