package cli

import (
	"github.com/spf13/cobra"

	"holdfast/engine/model"
)

func newAdminMetadata() *cobra.Command {
	cmd := newAdminCommand("backup-metadata", "Copy the appliance's metadata while it runs",
		model.ActionMetadataBackup, cobra.NoArgs, nothing,
		showWritten)
	cmd.Long = "Copy the appliance's metadata, which says what every file in the data directory is, while it runs. One copy\n" +
		"a day is made by itself, and the last fourteen are kept. To go back to one, stop the appliance and put the copy in\n" +
		"the place of holdfast.db. Keep secret.key too, and somewhere else: it opens the passwords in every copy."
	return cmd
}
