package remote

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newEvents(s *session) *cobra.Command {
	var o client.EventOptions
	var selector string
	cmd := s.command("events", "Follow what happens, until it is interrupted", cobra.NoArgs, func(t *task, _ []string) error {
		o.Type = wire.EventSelector(selector)
		for e, err := range t.api.GetEvents(t.ctx, o) {
			if errors.Is(err, client.ErrEventGap) {
				fmt.Fprintln(t.cmd.ErrOrStderr(), "holdfast: "+err.Error())
				continue
			}
			if err == nil {
				err = t.printEvent(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Long = "Follow the events of the organization that the key may see, from now on: backups, restores, imports, databases,\n" +
		"keys and others. After a lost connection it goes on where it was. --json prints each event as a line, as webhooks\n" +
		"receive it."
	cmd.Example = "  holdfast events --type 'backup.*'\n" +
		"  holdfast events --json | jq -r --unbuffered 'select(.type == \"backup.failed\") | .data.message'"
	cmd.Flags().StringVar(&selector, "type", "", "only this type, such as backup.failed, or this area, such as 'backup.*'")
	cmd.Flags().StringVar(&o.After, "after", "", "begin after the event with this id, instead of now")
	return cmd
}

func (t *task) printEvent(e wire.Event) error {
	if !t.json {
		_, err := fmt.Fprintf(Plain(t.cmd.OutOrStdout()), "%s  %-26s  %s\n", formatTime(&e.Timestamp), e.Type, e.Data.Message)
		return err
	}
	line := json.NewEncoder(t.cmd.OutOrStdout())
	line.SetEscapeHTML(false)
	return line.Encode(e)
}
