// Package cli is the command line; the commands that speak to an appliance
// over HTTP are cli/remote's. serve is the composition root: the one
// place where the parts of the appliance are put together. The operator's
// commands under admin speak to a running appliance over its socket, and work
// on its files when none runs.
package cli
