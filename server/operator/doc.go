// Package operator is what the operator of the machine can do: a table of
// commands served over a Unix socket that only the appliance's user can reach.
// The command line calls the same handler in-process when no appliance runs.
package operator
