// Package cli is the command line; cli/remote holds the commands that use an
// appliance over HTTP. serve is the composition root: the one place where the
// parts of the appliance are put together. The operator commands under admin
// ask a running appliance over its socket, or work on its files when none runs.
package cli
