// Command manual writes the manual pages and the shell completions of the
// command line into the subdirectories man and completions of a directory.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"holdfast/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	root := cli.NewRoot()
	root.DisableAutoGenTag = true
	at := func(shell string) string { return filepath.Join(completions, "holdfast."+shell) }
	return errors.Join(
		doc.GenManTree(root, &doc.GenManHeader{Title: "HOLDFAST", Section: "1", Source: "holdfast", Manual: "holdfast"}, man),
		root.GenBashCompletionFileV2(at("bash"), true),
		root.GenZshCompletionFile(at("zsh")),
		root.GenFishCompletionFile(at("fish"), true),
		root.GenPowerShellCompletionFileWithDesc(at("ps1")),
	)
}
