// Package operator has the commands of the machine's operator: a table served over a Unix socket that only the
// appliance's user can reach. The command line calls the same handler in-process when no appliance runs.
package operator
