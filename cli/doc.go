// Package cli is the command line. serve is the composition root: the one
// place where the parts of the appliance are put together. The operator's
// commands under admin speak to a running appliance over its socket, and work
// on its files when none runs.
package cli
