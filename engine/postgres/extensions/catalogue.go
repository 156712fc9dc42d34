// Package extensions is the catalogue of PostgreSQL's extensions: which of them
// a tenant may have, who creates them, and why others are refused. What is
// installed on the machine and in a database is up to package postgres.
//
// The scripts of an extension run as the superuser. The appliance runs them only
// in schemas that belong to it, so that no name in a script leads to a tenant's
// object. The catalogue names every schema that a script uses, and leaves out
// extensions that would give a tenant files, other servers, raw pages or code.
package extensions

import (
	"fmt"
)

// Schema is the schema of extensions that need none of their own.
const Schema = "extensions"

// Class says who may create an extension.
type Class string

// The classes. ClassUnknown is that of extensions that the catalogue lacks.
const (
	ClassSelf      Class = "self"      // trusted: the database's owner, or the appliance
	ClassAppliance Class = "appliance" // the appliance only
	ClassPreload   Class = "preload"   // the appliance, after a restart with the library
	ClassForbidden Class = "forbidden" // nobody
	ClassUnknown   Class = "unknown"   // nobody
)

// Extension is an entry of the catalogue.
type Extension struct {
	Name  string
	Class Class
	// Schema is where the extension is created; "" means [Schema].
	Schema string
	// Makes are the schemas that its script creates: none of them may exist.
	Makes []string
	// Preload is the library that the server loads at its start.
	Preload string
	// Settings are what the server needs beside the library. {database} stands for
	// the name of the tenant's database.
	Settings map[string]string
	// Grants are the functions and relations of the extension that the owner's role
	// may use, "*" for all; Revokes are functions that PUBLIC may not execute.
	// Neither appears in dumps.
	Grants, Revokes []string
	// Dump says what dumps of the database contain of it, "" if only its CREATE
	// EXTENSION. KeepsRows means that the owner may write to its tables, and that their
	// rows are in dumps.
	Dump      string
	KeepsRows bool
	// Before is the major version that no longer has it, 0 if all have it.
	Before int
	// Fixed says why its version is not changed in place, "" if it can be.
	Fixed string
	// Package is the package of Debian and PostgreSQL's own repository without its
	// prefix postgresql-<major>-; "" if it comes with the server (postgresql-contrib).
	Package string
	// Notes says what a user should know; for a forbidden one, why.
	Notes string
}

// Find returns the entry of an extension, one of [ClassUnknown] if there is none.
func Find(name string) Extension {
	if x, ok := byName()[name]; ok {
		return x
	}
	return Extension{
		Name: name, Class: ClassUnknown,
		Notes: "it is not in the catalogue: its scripts would run as the superuser, and nobody has read them",
	}
}

// InSchema returns the schema in which the extension is created.
func (x Extension) InSchema() string {
	if x.Schema == "" {
		return Schema
	}
	return x.Schema
}

// Allowed reports whether the appliance creates the extension.
func (x Extension) Allowed() bool { return x.Class != ClassForbidden && x.Class != ClassUnknown }

// Install says which package brings the extension to a machine.
func (x Extension) Install(major int) string {
	if x.Package == "" {
		return fmt.Sprintf("install PostgreSQL's additional modules (postgresql-%d of Debian has them, elsewhere postgresql-contrib)", major)
	}
	return fmt.Sprintf("install the package postgresql-%d-%s, or build the extension for PostgreSQL %d", major, x.Package, major)
}
