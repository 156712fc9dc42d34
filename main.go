// Command holdfast turns a machine into a managed PostgreSQL, object storage
// and backup service.
package main

import (
	"os"

	"holdfast/cli"
)

func main() { os.Exit(cli.Main()) }
