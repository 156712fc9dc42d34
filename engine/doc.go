// Package engine holds the rooms of the appliance together: core, access,
// objects, databases, recovery, imports and insight, each a package below it with
// a file for each operation. The API, the console and the operator's commands
// call the same operations.
//
// The package itself does what concerns all rooms: Open, Start and Close, the
// recovery at a start, the sweep, older metadata, and moving an appliance.
package engine
