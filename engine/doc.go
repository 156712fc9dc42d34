// Package engine combines the appliance's services: core, access, objects, databases, recovery, imports and insight.
// Each is a subpackage with one file per operation. The API, the console and the operator's commands call the same
// operations.
//
// The package itself does what concerns all services: Open, Start and Close, recovery at start, the sweep, the handling
// of older metadata, and moving an appliance.
package engine
